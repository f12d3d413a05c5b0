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

  /// Without weights (null) it is one that a record tells of (ranking_redo.hpp).
  RankingObject(std::uint32_t id, std::string name, ModelPlan plan,
                std::unique_ptr<ModelWeights> weights);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ModelShape shape() const;
  [[nodiscard]] const ModelPlan& plan() const { return plan_; }
  /// Without them, after a restart, it was never made to its end.
  [[nodiscard]] bool has_weights() const { return weights_ != nullptr; }
  /// Requires: has_weights().
  [[nodiscard]] const ModelWeights& weights() const { return *weights_; }
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }

  void count(std::uint64_t queries, std::uint64_t batches) const;

  // While a store is made again.
  /// The file as far as records have told of it; empty: they have not.
  [[nodiscard]] std::string& told_file() { return told_file_; }
  void set_weights(std::unique_ptr<ModelWeights> weights) { weights_ = std::move(weights); }

  void set_dropped() override { dropped_.store(true, std::memory_order_release); }
  /// ModelShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

 private:
  const std::uint32_t id_;
  const std::string name_;
  const ModelPlan plan_;
  std::unique_ptr<ModelWeights> weights_;
  std::string told_file_;
  std::atomic<bool> dropped_{false};
  mutable std::atomic<std::uint64_t> queries_{0};
  mutable std::atomic<std::uint64_t> batches_{0};
};

/// Makes a model of a file's bytes; one of that name that lacks its weights goes first. Cost: they
/// are copied, as the machine's kernel wants them; in a store with a log into records, too.
/// Errors: those of Catalog::create; invalid_argument (in words: it is no file of a model),
/// out_of_memory, those of the log, of which busy comes after some seconds.
TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file);

}  // namespace espalier::embedding
