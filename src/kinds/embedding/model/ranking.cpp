// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/ranking.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/samples.hpp"
#include "kinds/embedding/model/model_redo.hpp"

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
  return {plan_.tables.size(), has_weights() ? weights_->memory_bytes() : 0};
}

void RankingObject::add_samples(catalog::SampleList& to) const {
  to.gauge({"memory_bytes", "bytes", "Memory of weights."}, numbers().memory_bytes);
  to.gauge({"tables", "", "Embedding tables that the model reads."}, plan_.tables.size());
  to.counter({"queries", "", "Queries that were ranked."},
             queries_.load(std::memory_order_relaxed));
  to.counter({"batches", "", "Runs of the networks, of many queries each."},
             batches_.load(std::memory_order_relaxed));
}

namespace {

constexpr std::uint64_t kWeightsTimeoutNs = 5'000'000'000;
constexpr auto kWeightsAgain = std::chrono::milliseconds(1);

/// A model without weights is one that its maker does not know of.
Result<void> drop_unmade(catalog::Catalog& catalog, std::string_view name) {
  const auto there = catalog.find_any(name);
  if (there == nullptr || there->kind != RankingObject::kKind) return {};
  if (static_cast<const RankingObject&>(*there->object).has_weights()) return {};
  const auto dropped = catalog.drop(name, RankingObject::kKind);
  if (dropped || dropped.error().code == Code::not_found) return {};
  return std::unexpected(dropped.error());
}

/// Room for a part; where there is none just now it waits until more is durable. Errors: those of
/// the sink.
Result<catalog::RedoRoom> room_for_weights(catalog::RedoSink* sink, std::size_t floats) {
  for (const std::uint64_t began = base::monotonic_ns();;) {
    auto room = catalog::RedoRoom::reserve(sink, weights_record_bytes(floats));
    const bool waits = !room && room.error().code == Code::busy &&
                       base::monotonic_ns() - began < kWeightsTimeoutNs;
    if (!waits) return room;
    base::DurableMark& mark = sink->mark();
    static_cast<void>(mark.await(mark.released() + 1, kWeightsAgain));
  }
}

/// Behind the record that it was made: who is told of it is told once the last of these is durable.
Result<void> record_weights(catalog::Catalog& catalog, std::uint32_t model,
                            std::string_view floats) {
  if (catalog.redo() == nullptr) return {};
  for (std::uint64_t first = 0; !floats.empty();) {
    const std::size_t some = std::min(floats.size(), kWeightsOfAPart * sizeof(float));
    auto room = room_for_weights(catalog.redo(), some / sizeof(float));
    if (!room) return std::unexpected(room.error());
    write_weights(room->bytes(), model, first, floats.substr(0, some));
    room->hand_over();
    first += some / sizeof(float);
    floats.remove_prefix(some);
  }
  return {};
}

}  // namespace

TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file) {
  auto plan = read_model_plan(file);
  if (!plan) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, plan.error()));
  }
  if (const auto dropped = drop_unmade(catalog, name); !dropped) {
    return std::unexpected(dropped.error());
  }
  if (const auto there = catalog.find_any(name)) {  // spares the copy; create() has the last word
    return std::unexpected(Error{Code::already_exists, 0, static_cast<std::uint32_t>(there->kind)});
  }
  const std::size_t floats_at = plan->floats_at;
  // Before the catalogue is locked, so that whoever looks for an object meanwhile finds it.
  auto weights = ModelWeights::create(pool, *plan, file, dense_kit());
  if (!weights) return std::unexpected(weights.error());
  auto made = catalog.create<RankingObject>(
      name, file.substr(0, plan->floats_at),
      [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<RankingObject>> {
        (*weights)->belong_to(id);
        return std::make_shared<RankingObject>(id, std::move(own_name), *std::move(plan),
                                               std::move(*weights));
      });
  if (!made) return std::unexpected(made.error());
  if (const auto done = record_weights(catalog, (*made)->id(), file.substr(floats_at)); !done) {
    // Another one may have dropped it and taken its name.
    const auto there = catalog.find_any(name);
    if (there != nullptr && there->object == *made) static_cast<void>(catalog.drop(name));
    return std::unexpected(done.error());
  }
  return *std::move(made);
}

}  // namespace espalier::embedding
