// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/inference.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/durable_mark.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/embedding/embedding_table.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/model/networks.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/tables_reducer.hpp"

namespace espalier::embedding {
namespace {

std::unexpected<TableError> wrong_request(std::string words) {
  return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, std::move(words)));
}

/// Why a model cannot rank now; nothing: it can. No client is given its number before its weights
/// are durable, but one may guess it.
std::optional<TableError> fault_of_model(const RankingObject& model,
                                         const catalog::Catalog& catalog) {
  if (const auto usable = model.usable(); !usable) {
    const bool unmade = model.is_unmade() && !model.dropped();
    return TableError(usable.error(),
                      unmade ? "the model was not made to its end: make it again" : "");
  }
  catalog::RedoSink* const sink = catalog.redo();
  if (sink == nullptr) return std::nullopt;
  const bool failed = sink->mark().failed();
  if (model.told_in() <= sink->mark().released()) return std::nullopt;
  if (failed) return TableError(catalog::kRecordLost);
  return TableError(Error{Code::busy, 0, model.id()}, "the model's weights are not durable yet");
}

}  // namespace

/// The queries, and the reductions of their rows.
struct Inference::Work {
  ModelQueries queries;
  std::vector<std::shared_ptr<EmbeddingTable>> tables;
  std::vector<TableWork> works;
  std::unique_ptr<float[]> pooled;  // uninitialised: each reduction writes all of its own
  std::optional<TablesReducer> reducer;
};

Inference::Inference(std::shared_ptr<const RankingObject> model)
    : model_(std::move(model)), work_(std::make_unique<Work>()) {}

Inference::~Inference() = default;

std::uint32_t Inference::queries() const { return work_->queries.queries; }

std::uint64_t Inference::pooled_bytes() const {
  const ModelPlan& plan = model_->plan();
  return std::uint64_t{queries()} * plan.tables.size() * plan.dimension * sizeof(float);
}

TableResult<void> Inference::read(const InferShape& shape, std::string_view bytes) {
  auto queries = shape.text != 0 ? parse_queries(model_->shape(), bytes)
                                 : read_queries(model_->shape(), shape.queries, bytes);
  if (!queries) return wrong_request(std::move(queries.error()));
  work_->queries = std::move(*queries);
  return {};
}

/// By the tables' names at one moment: repeated if some are renamed meanwhile.
TableResult<void> Inference::open(const catalog::Catalog& catalog) {
  if (const auto fault = fault_of_model(*model_, catalog)) return std::unexpected(*fault);
  const ModelPlan& plan = model_->plan();
  const std::size_t floats = pooled_bytes() / sizeof(float);
  work_->pooled = std::make_unique_for_overwrite<float[]>(floats);
  const std::span<float> pooled(work_->pooled.get(), floats);
  ranks_.resize(std::size_t{work_->queries.queries} * plan.outputs());
  for (;;) {
    const std::uint32_t renames = catalog.renames();
    auto opened = open_tables(catalog, pooled);
    if (catalog.renames() == renames) {
      if (!opened) return opened;
      break;
    }
    work_->works.clear();
    work_->tables.clear();
  }
  if (auto fault = fault_of_tables(work_->works)) return wrong_request(*std::move(fault));
  work_->reducer.emplace(work_->works);
  return work_->reducer->begin();
}

TableResult<void> Inference::open_tables(const catalog::Catalog& catalog, std::span<float> pooled) {
  const ModelPlan& plan = model_->plan();
  const std::size_t of_table = std::size_t{work_->queries.queries} * plan.dimension;
  for (std::size_t t = 0; t < plan.tables.size(); ++t) {
    auto table = catalog.open<EmbeddingTable>(plan.tables[t]);
    if (!table) {
      return std::unexpected(
          TableError(table.error(), "the model's embedding table " + plan.tables[t]));
    }
    if ((*table)->options().dimension != plan.dimension) {
      return wrong_request("embedding table " + plan.tables[t] + " has rows of " +
                           std::to_string((*table)->options().dimension) +
                           " values, and the model takes " + std::to_string(plan.dimension));
    }
    const ModelQueries::Bags& bags = work_->queries.tables[t];
    work_->works.push_back({table->get(),
                            {plan.reduction, {bags.ids, bags.offsets, {}, bags.grouping}, {}},
                            pooled.subspan(t * of_table, of_table)});
    work_->tables.push_back(*std::move(table));
  }
  return {};
}

TableResult<bool> Inference::step() {
  auto more = work_->reducer->step();
  if (!more || !*more) {
    work_->reducer.reset();
    work_->works.clear();
    work_->tables.clear();
  }
  return more;
}

DenseItem Inference::item() {
  return {work_->queries.queries, work_->queries.dense.data(), work_->pooled.get(), ranks_.data()};
}

TableResult<std::vector<float>> infer(std::shared_ptr<const RankingObject> model,
                                      const catalog::Catalog& catalog, const InferShape& shape,
                                      std::string_view bytes) {
  Inference of(std::move(model));
  if (const auto done = of.read(shape, bytes); !done) return std::unexpected(done.error());
  if (const auto done = of.open(catalog); !done) return std::unexpected(done.error());
  for (;;) {
    const auto more = of.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
  }
  const DenseItem item = of.item();
  Networks networks(of.model()->weights(), of.model()->shape().tables, {&item, 1});
  while (networks.step()) {
  }
  of.model()->count(item.queries, 1);
  return of.ranks();
}

}  // namespace espalier::embedding

namespace espalier::model_calls {

Result<std::shared_ptr<embedding::RankingObject>> obtain(catalog::Catalog& catalog,
                                                         const Open& asked) {
  auto opened = catalog.open<embedding::RankingObject>(asked.name);
  if (!opened) return opened;
  if (const auto usable = (*opened)->usable(); !usable) return std::unexpected(usable.error());
  return opened;
}

}  // namespace espalier::model_calls
