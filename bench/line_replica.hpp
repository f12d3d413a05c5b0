// SPDX-License-Identifier: Apache-2.0
// A replica of the chains that one thread polls (chain_line.hpp): a store with one hash map, and a
// log of its transactions in emulated persistent memory.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/transaction_calls.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "memory/version_clock.hpp"
#include "store/store_core.hpp"

namespace espalier::bench {

/// A ring of records in emulated persistent memory: each is written back when it is handed over.
/// They become durable by a call, once the chain has them.
class PersistentRing final : public catalog::RedoSink {
 public:
  PersistentRing();

  Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept override;
  std::uint64_t hand_over(std::span<std::byte> record) noexcept override;
  [[nodiscard]] std::uint64_t handed_over() const noexcept override { return count_; }
  void give_back(std::span<std::byte>) noexcept override {}  // what is behind it is taken next
  [[nodiscard]] base::DurableMark& mark() noexcept override { return mark_; }
  [[nodiscard]] std::string failure() const override { return "it does not fail"; }

  [[nodiscard]] std::span<const std::byte> newest() const { return newest_; }

 private:
  std::vector<std::byte> memory_;
  std::size_t next_ = 0;
  std::uint64_t count_ = 0;
  std::span<const std::byte> newest_;
  base::DurableMark mark_;
};

class LineReplica {
 public:
  static constexpr std::string_view kMap = "pairs";

  /// Errors: throws std::runtime_error.
  LineReplica(std::uint64_t pairs, std::uint32_t value_bytes);

  /// The head alone: starts to record its transactions.
  void begin_records() { store_.catalog.record_to(&log_); }
  /// Executes a transaction. Its record, if it has one, is log().newest(); it may be answered once
  /// that is acknowledged. Returns the bytes of its answer, valid until the next one. Errors:
  /// throws std::runtime_error.
  std::string_view execute(const object_calls::Transact& asked);
  /// The chain has all of this replica's records.
  void acknowledge();
  /// Applies the record of a transaction, which is aligned to 8. Errors: as execute().
  void apply(std::span<const std::byte> record);

  [[nodiscard]] PersistentRing& log() { return log_; }
  /// Puts a pair. Errors: as execute().
  void put(std::string_view key, std::string_view value);
  /// Errors: as execute(), also if there is none.
  [[nodiscard]] std::string value_of(std::string_view key);

 private:
  PersistentRing log_;  // outlives the objects whose records it takes
  tree::StoreCore store_;
  offload::Services services_;
  offload::RedoTarget target_;
  std::shared_ptr<hash::HashMap> map_;
  hash::HashThread thread_;
  memory::VersionClock* clock_;
  std::uint64_t waits_for_ = 0;  // the version that the last answer returned
  std::string found_;
};

}  // namespace espalier::bench
