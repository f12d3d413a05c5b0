// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/model/ranking.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/samples.hpp"
#include "kinds/embedding/model/model_redo.hpp"

namespace espalier::embedding {

RankingObject::RankingObject(std::uint32_t id, std::string name, ModelPlan plan,
                             std::unique_ptr<ModelWeights> weights)
    : id_(id),
      name_(std::move(name)),
      plan_(std::move(plan)),
      weights_(std::move(weights)),
      making_(weights_ == nullptr ? Making::unmade : Making::under_way) {}

Result<void> RankingObject::usable() const {
  const Making making = making_.load();
  if (dropped() || making == Making::unmade) return fail(Code::not_found, id_);
  return making == Making::made ? Result<void>() : fail(Code::busy, id_);
}

void RankingObject::set_made(std::uint64_t sequence) {
  told_in_.store(sequence);  // first: a thread that finds it made waits for that
  making_.store(Making::made);
}

void RankingObject::set_weights(std::unique_ptr<ModelWeights> weights) {
  weights_ = std::move(weights);
  set_made(0);
}

void RankingObject::record_to(catalog::RedoSink* sink) {
  std::string().swap(told_file_);  // tens of MiB
  Object::record_to(sink);
}

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
  to.counter({"batches", "", "Runs of the networks, of many queries each."}, batches());
}

namespace {

constexpr auto kWeightsAgain = std::chrono::milliseconds(1);

/// Drops an unmade model, whose creation was never answered.
Result<void> drop_unmade(catalog::Catalog& catalog, std::string_view name) {
  const auto there = catalog.find_any(name);
  if (there == nullptr || there->kind != RankingObject::kKind) return {};
  if (!static_cast<const RankingObject&>(*there->object).is_unmade()) return {};
  const auto dropped = catalog.drop(name, RankingObject::kKind, there->id);
  if (dropped || dropped.error().code == Code::not_found) return {};
  return std::unexpected(dropped.error());
}

}  // namespace

RankingMaking::~RankingMaking() {
  if (!over_) undo();
}

TableResult<bool> RankingMaking::step() {
  ESPALIER_ASSERT(!over_);
  auto more = made_ == nullptr ? begin() : record_some();
  if (!more) {
    if (!undo()) {
      more.error().words =
          "nor can it be dropped: it ranks nothing, and goes when it is made again";
    }
    over_ = true;
  } else if (!*more) {
    over_ = true;
  }
  return more;
}

TableResult<bool> RankingMaking::begin() {
  auto plan = read_model_plan(file_);
  if (!plan) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, 0}, plan.error()));
  }
  if (const auto dropped = drop_unmade(catalog_, name_); !dropped) {
    return std::unexpected(dropped.error());
  }
  if (const auto there = catalog_.find_any(name_)) {  // spares the copy; create() decides
    return std::unexpected(Error{Code::already_exists, 0, static_cast<std::uint32_t>(there->kind)});
  }
  left_ = file_.substr(plan->floats_at);
  // Before the catalogue is locked, so that look-ups do not wait meanwhile.
  auto weights = ModelWeights::create(pool_, *plan, file_, dense_kit());
  if (!weights) return std::unexpected(weights.error());
  auto made = catalog_.create<RankingObject>(
      name_, file_.substr(0, plan->floats_at),
      [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<RankingObject>> {
        (*weights)->belong_to(id);
        return std::make_shared<RankingObject>(id, std::move(own_name), *std::move(plan),
                                               std::move(*weights));
      });
  if (!made) return std::unexpected(made.error());
  made_ = *std::move(made);
  began_ns_ = base::monotonic_ns();
  if (catalog_.redo() != nullptr) return true;
  made_->set_made(0);
  return false;
}

// Follows the record of its creation.
TableResult<bool> RankingMaking::record_some() {
  waits_ = false;
  if (made_->dropped()) return std::unexpected(Error{Code::not_found, 0, made_->id()});
  catalog::RedoSink* const sink = catalog_.redo();
  const std::size_t some = std::min(left_.size(), kWeightsOfAPart * sizeof(float));
  auto room = catalog::RedoRoom::reserve(sink, weights_record_bytes(some / sizeof(float)));
  if (!room) {
    waits_ = room.error().code == Code::busy && !sink->mark().failed() &&
             base::monotonic_ns() - began_ns_ < timeout_ns_;
    if (waits_) return true;
    return std::unexpected(room.error());
  }
  write_weights(room->bytes(), made_->id(), first_, left_.substr(0, some));
  const std::uint64_t sequence = room->hand_over();
  first_ += some / sizeof(float);
  left_.remove_prefix(some);
  if (!left_.empty()) return true;
  made_->set_made(sequence);
  return false;
}

// Returns whether it is gone. The log may have no room for its record either.
bool RankingMaking::undo() {
  if (made_ == nullptr) return true;
  made_->set_unmade();
  const auto dropped = catalog_.drop(made_->name(), RankingObject::kKind, made_->id());
  return dropped || dropped.error().code == Code::not_found;
}

TableResult<std::shared_ptr<RankingObject>> create_ranking_model(catalog::Catalog& catalog,
                                                                 memory::BufferPool& pool,
                                                                 std::string_view name,
                                                                 std::string_view file) {
  RankingMaking making(catalog, pool, name, file);
  for (;;) {
    const auto more = making.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return making.made();
    if (!making.waits()) continue;
    base::DurableMark& mark = catalog.redo()->mark();
    static_cast<void>(mark.await(mark.released() + 1, kWeightsAgain));
  }
}

}  // namespace espalier::embedding
