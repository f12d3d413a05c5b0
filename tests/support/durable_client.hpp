// SPDX-License-Identifier: Apache-2.0
// A client of a durable node that is killed repeatedly: it writes its own keys, knows which writes
// were acknowledged and which were in flight, and checks after each restart that these are there.
// With a node that answers before its writes are durable it expects only what was reported as
// durable. It outlives the node, in a process of its own.
//
// Thread: one.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "espalier/embedding_table.hpp"
#include "espalier/espalier.hpp"
#include "espalier/hash_map.hpp"
#include "espalier/ranking_model.hpp"
#include "tests/support/key_truth.hpp"

namespace espalier::test {

class DurableClient {
 public:
  DurableClient(std::uint64_t number, std::uint64_t seed, bool async = false)
      : number_(number), async_(async), random_(seed) {}

  /// Connects to the node, and checks all that it knows of. Returns what is wrong; empty: nothing.
  std::string check(const std::string& address);
  /// Writes until the node is gone; calls `acknowledged` for each answer. Returns what is wrong
  /// with the end.
  template <class Acknowledged>
  std::string work(const Acknowledged& acknowledged) {
    for (;;) {
      const Result<void> done = step();
      if (done) {
        acknowledged();
        continue;
      }
      store_.reset();
      if (is_gone(done.error())) return {};
      return "a write was refused: " + message(done.error());
    }
  }

 private:
  static constexpr std::uint64_t kKeys = 24;
  static constexpr std::uint32_t kColumns = 8;  // of its embedding table

  /// The handles of one connection.
  struct Handles {
    Store store;
    Map map;
    HashMap hash;
    Table table;
    Sequencer numbers;
    EmbeddingTable vectors;  // of this client: row 0 is replaced, row i has i
    std::optional<RankingModel> model;
  };

  [[nodiscard]] Result<Handles> open(const std::string& address) const;
  [[nodiscard]] static bool is_gone(const Error& error);
  std::string check_keys();
  std::string check_numbers();
  std::string check_others();
  std::string check_vectors();
  std::string check_model();
  Result<void> step();
  Result<void> write_map(const std::string& key);
  Result<void> write_hash(const std::string& key);
  Result<void> write_batch();
  Result<void> write_burst();
  Result<void> add();
  Result<void> append();
  Result<void> take();
  Result<void> append_vectors();
  Result<void> replace_vector();
  Result<void> make_model();
  /// What the model says of a query without ids.
  [[nodiscard]] TableResult<float> rank() const;
  Result<void> look_at_others();
  Result<void> await_durable();
  /// Calls `what`, which records answers, once all that was answered by now is durable.
  void believe(std::function<void()> what);
  /// Records a write's version in the map, which must not be reused. Errors: corrupt.
  Result<void> take_version(Version version);
  template <class Object>
  Result<void> write_one(Object& object, KeyTruth& truth, const std::string& key,
                         const std::string& value);
  [[nodiscard]] std::string own_key(std::uint64_t i) const {
    return "c" + std::to_string(number_) + "/" + std::to_string(i);
  }
  [[nodiscard]] std::array<std::string, 3> batch_keys() const {
    return {own_key(kKeys), own_key(kKeys + 1), own_key(kKeys + 2)};
  }
  [[nodiscard]] std::string vectors_name() const { return "vectors" + std::to_string(number_); }
  [[nodiscard]] std::string model_name() const { return "model" + std::to_string(number_); }
  [[nodiscard]] std::string sum_key() const { return "sum" + std::to_string(number_); }

  const std::uint64_t number_;
  const bool async_;
  base::Random random_;
  std::vector<std::function<void()>> to_believe_;  // of an async node
  Version highest_version_ = 0;                    // of the map
  std::optional<Handles> store_;
  std::uint64_t written_ = 0;  // values ascend
  std::map<std::string, KeyTruth> map_;
  std::map<std::string, KeyTruth> hash_;
  NumberTruth sum_;
  NumberTruth rows_;
  NumberTruth vectors_;      // rows
  NumberTruth vector_;       // what row 0 has
  bool model_made_ = false;  // and acknowledged
  std::optional<float> rank_;
  std::uint64_t next_number_ = 0;              // all numbers that were given are below
  std::uint64_t next_counted_ = 0;             // likewise
  std::map<std::string, std::uint64_t> seen_;  // of other clients' keys
};

}  // namespace espalier::test
