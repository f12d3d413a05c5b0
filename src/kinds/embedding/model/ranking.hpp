// SPDX-License-Identifier: Apache-2.0
// A ranking model as an object of its store: the networks of a recommendation model, and the names
// of the embedding tables that it reads [RAMBDA §IV-C].
//
//   dense features --> bottom network --+--------------------> products of --> top network --> rank
//   ids --> sums of rows of each table -+  (vectors alike)     each pair
//
// The top network takes the output of the bottom one, and the inner product of each two vectors
// (that output, and one vector of each table): (1,0), (2,0), (2,1), ... as in DLRM. All layers but
// the last of the top network are rectified; that one is followed by a sigmoid.
//
// Each request looks tables up by name, so that one may be exchanged for another.
//
// A model is in the catalogue before its weights are logged, and cannot be used before they are:
//
//   under way --> made      its last record has a sequence, for which openers wait
//       |
//       +-------> unmade    the next model of that name replaces it
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "espalier/table_error.hpp"
#include "kinds/embedding/model/model_format.hpp"
#include "kinds/embedding/model/model_weights.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::embedding {

class RankingObject final : public catalog::Object {
 public:
  static constexpr ObjectKind kKind = ObjectKind::model;

  /// A model that is being made; without weights (null) it is one of a record of creation
  /// (ranking_redo.hpp), and unmade until it has them.
  RankingObject(std::uint32_t id, std::string name, ModelPlan plan,
                std::unique_ptr<ModelWeights> weights);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ModelShape shape() const;
  [[nodiscard]] const ModelPlan& plan() const { return plan_; }
  /// Without weights, after a restart, its making was not completed.
  [[nodiscard]] bool has_weights() const { return weights_ != nullptr; }
  /// Requires: has_weights().
  [[nodiscard]] const ModelWeights& weights() const { return *weights_; }
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }

  /// Whether it may be opened and used. Errors: not_found (it was dropped, or is unmade), busy (it
  /// is being made).
  [[nodiscard]] Result<void> usable() const;
  [[nodiscard]] bool is_unmade() const { return making_.load() == Making::unmade; }
  /// `sequence`: of the last record of its weights; 0: there is none.
  void set_made(std::uint64_t sequence);
  void set_unmade() { making_.store(Making::unmade); }
  [[nodiscard]] std::uint64_t told_in() const override { return told_in_.load(); }

  void count(std::uint64_t queries, std::uint64_t batches) const;
  /// Runs of the networks so far.
  [[nodiscard]] std::uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }

  // During recovery:
  /// The file as far as records had it; empty: nothing yet.
  [[nodiscard]] std::string& told_file() { return told_file_; }
  void set_weights(std::unique_ptr<ModelWeights> weights);
  /// Recovery is over: frees the parts so far.
  void record_to(catalog::RedoSink* sink) override;

  void set_dropped() override { dropped_.store(true, std::memory_order_release); }
  /// ModelShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

 private:
  enum class Making : std::uint8_t { under_way, made, unmade };

  const std::uint32_t id_;
  const std::string name_;
  const ModelPlan plan_;
  std::unique_ptr<ModelWeights> weights_;
  std::string told_file_;
  std::atomic<Making> making_;
  std::atomic<std::uint64_t> told_in_{0};
  std::atomic<bool> dropped_{false};
  mutable std::atomic<std::uint64_t> queries_{0};
  mutable std::atomic<std::uint64_t> batches_{0};
};

/// Makes a model in steps, between which other work proceeds.
///
/// Thread: one at a time.
class RankingMaking {
 public:
  /// Timeout for all of its records if there is no room.
  static constexpr std::uint64_t kTimeoutNs = 10'000'000'000;

  /// The catalogue and the pool outlive it, the name and the file its steps.
  RankingMaking(catalog::Catalog& catalog, memory::BufferPool& pool, std::string_view name,
                std::string_view file, std::uint64_t timeout_ns = kTimeoutNs)
      : catalog_(catalog), pool_(pool), name_(name), file_(file), timeout_ns_(timeout_ns) {}
  /// Reverts one that is not over.
  ~RankingMaking();
  RankingMaking(const RankingMaking&) = delete;
  RankingMaking& operator=(const RankingMaking&) = delete;

  /// Returns whether there are more steps. After an error there are none. Cost: of the first one a
  /// copy of all weights; then one of 256 KiB. Errors: as of create_ranking_model().
  TableResult<bool> step();
  /// Whether the last step found no room for a record: it may find some soon.
  [[nodiscard]] bool waits() const { return waits_; }
  /// Requires: step() returned that it is over.
  [[nodiscard]] const std::shared_ptr<RankingObject>& made() const { return made_; }

 private:
  TableResult<bool> begin();
  TableResult<bool> record_some();
  bool undo();

  catalog::Catalog& catalog_;
  memory::BufferPool& pool_;
  const std::string_view name_;
  const std::string_view file_;
  const std::uint64_t timeout_ns_;
  std::shared_ptr<RankingObject> made_;
  std::string_view left_;    // floats that are not logged yet
  std::uint64_t first_ = 0;  // number of the first of them
  std::uint64_t began_ns_ = 0;
  bool waits_ = false;
  bool over_ = false;
};

/// Makes a model of a file's bytes; one of that name that is unmade is removed first. Cost: a copy
/// of them, in the layout of the machine's kernel; in a store with a log into records, too. Errors:
/// those of Catalog::create; invalid_argument (in words: it is no file of a model), out_of_memory,
/// not_found (it was dropped meanwhile), those of the log, of which busy comes after some seconds.
/// Waits for room in the log, and not until it is durable.
TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file);

}  // namespace espalier::embedding
