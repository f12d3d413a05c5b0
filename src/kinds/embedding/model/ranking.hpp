// SPDX-License-Identifier: Apache-2.0
// A ranking model as an object of its store: the networks of a recommendation model, and which
// embedding tables it reads [RAMBDA §IV-C].
//
//   dense features --> bottom network --+--------------------> products of --> top network --> rank
//   ids --> sums of rows of each table -+  (vectors alike)     each pair
//
// The top network takes what the bottom one puts out, and of each two of the vectors (that, and one
// of each table) their inner product: (1,0), (2,0), (2,1), ... as DLRM has them. All layers but the
// last of the top network put out no negative numbers; that one goes through a sigmoid.
//
// Tables are found by name with each request, so that one may be exchanged for another.
//
// It is in the catalogue before its weights are recorded, and nobody uses it before they are:
//
//   under way --> made      its last record has a sequence, for which waits who opens it
//       |
//       +-------> unmade    it gives its name to the next
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

  /// Its making is under way; without weights (null) it is one that a record tells of
  /// (ranking_redo.hpp), and unmade until it has them.
  RankingObject(std::uint32_t id, std::string name, ModelPlan plan,
                std::unique_ptr<ModelWeights> weights);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ModelShape shape() const;
  [[nodiscard]] const ModelPlan& plan() const { return plan_; }
  /// Without them, after a restart, its making had no end.
  [[nodiscard]] bool has_weights() const { return weights_ != nullptr; }
  /// Requires: has_weights().
  [[nodiscard]] const ModelWeights& weights() const { return *weights_; }
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }

  /// Whether it may be opened and asked. Errors: not_found (it was dropped, or is unmade), busy
  /// (its making is under way).
  [[nodiscard]] Result<void> usable() const;
  [[nodiscard]] bool is_unmade() const { return making_.load() == Making::unmade; }
  /// `sequence`: of the last record of its weights; 0: there is none.
  void set_made(std::uint64_t sequence);
  void set_unmade() { making_.store(Making::unmade); }
  [[nodiscard]] std::uint64_t told_in() const override { return told_in_.load(); }

  void count(std::uint64_t queries, std::uint64_t batches) const;
  /// Runs of the networks so far.
  [[nodiscard]] std::uint64_t batches() const { return batches_.load(std::memory_order_relaxed); }

  // While a store is made again.
  /// The file as far as records have told of it; empty: they have not.
  [[nodiscard]] std::string& told_file() { return told_file_; }
  void set_weights(std::unique_ptr<ModelWeights> weights);
  /// The store is made again: what parts have come of it is let go.
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

/// A model that is being made, in steps between which others go on.
///
/// Thread: one at a time.
class RankingMaking {
 public:
  /// How long all of its records may take where there is no room.
  static constexpr std::uint64_t kTimeoutNs = 10'000'000'000;

  /// The catalogue and the pool outlive it, the name and the file its steps.
  RankingMaking(catalog::Catalog& catalog, memory::BufferPool& pool, std::string_view name,
                std::string_view file, std::uint64_t timeout_ns = kTimeoutNs)
      : catalog_(catalog), pool_(pool), name_(name), file_(file), timeout_ns_(timeout_ns) {}
  /// One that is not over is undone.
  ~RankingMaking();
  RankingMaking(const RankingMaking&) = delete;
  RankingMaking& operator=(const RankingMaking&) = delete;

  /// Returns whether there are other steps. After an error there are none. Cost: of the first one
  /// a copy of all weights; then one of 256 KiB. Errors: as of create_ranking_model().
  TableResult<bool> step();
  /// Whether the last step found no room for a record: there may be some in a moment.
  [[nodiscard]] bool waits() const { return waits_; }
  /// Requires: step() said that it is over.
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
  std::string_view left_;    // floats that are not recorded yet
  std::uint64_t first_ = 0;  // which ones they begin with
  std::uint64_t began_ns_ = 0;
  bool waits_ = false;
  bool over_ = false;
};

/// Makes a model of a file's bytes; one of that name that is unmade goes first. Cost: they are
/// copied, as the machine's kernel wants them; in a store with a log into records, too.
/// Errors: those of Catalog::create; invalid_argument (in words: it is no file of a model),
/// out_of_memory, not_found (another one has dropped it meanwhile), those of the log, of which busy
/// comes after some seconds. Waits for room, and not until it is durable.
TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file);

}  // namespace espalier::embedding
