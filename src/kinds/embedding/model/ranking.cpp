// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/ranking.hpp"

#include <utility>

#include "base/bytes.hpp"
#include "catalog/samples.hpp"

namespace espalier::embedding {

RankingObject::RankingObject(std::uint32_t id, std::string name, ModelPlan plan,
                             std::unique_ptr<ModelWeights> weights)
    : id_(id), name_(std::move(name)), plan_(std::move(plan)), weights_(std::move(weights)) {}

ModelShape RankingObject::shape() const {
  return {plan_.dense, static_cast<std::uint32_t>(plan_.tables.size()), plan_.dimension,
          plan_.outputs()};
}

void RankingObject::count(std::uint64_t queries, std::uint64_t batches) const {
  queries_.fetch_add(queries, std::memory_order_relaxed);
  batches_.fetch_add(batches, std::memory_order_relaxed);
}

std::string RankingObject::description() const { return std::string(base::bytes_of(shape())); }

catalog::ObjectNumbers RankingObject::numbers() const {
  return {plan_.tables.size(), weights_->memory_bytes()};
}

void RankingObject::add_samples(catalog::SampleList& to) const {
  to.gauge({"memory_bytes", "bytes", "Memory of weights."}, weights_->memory_bytes());
  to.gauge({"tables", "", "Embedding tables that the model reads."}, plan_.tables.size());
  to.counter({"queries", "", "Queries that were ranked."},
             queries_.load(std::memory_order_relaxed));
  to.counter({"batches", "", "Runs of the networks, of many queries each."},
             batches_.load(std::memory_order_relaxed));
}

TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file) {
  if (catalog.redo() != nullptr) {
    return std::unexpected(
        TableError(Error{Code::unsupported, 0, 0},
                   "a store with a log has no models yet: no record would make them again"));
  }
  auto plan = read_model_plan(file);
  if (!plan) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, plan.error()));
  }
  if (const auto there = catalog.find_any(name)) {  // spares the copy; create() has the last word
    return std::unexpected(Error{Code::already_exists, 0, static_cast<std::uint32_t>(there->kind)});
  }
  // Before the catalogue is locked, so that whoever looks for an object meanwhile finds it.
  auto weights = ModelWeights::create(pool, *plan, file, dense_kit());
  if (!weights) return std::unexpected(weights.error());
  auto made = catalog.create<RankingObject>(
      name, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<RankingObject>> {
        (*weights)->belong_to(id);
        return std::make_shared<RankingObject>(id, std::move(own_name), *std::move(plan),
                                               std::move(*weights));
      });
  if (!made) return std::unexpected(made.error());
  return *std::move(made);
}

}  // namespace espalier::embedding
