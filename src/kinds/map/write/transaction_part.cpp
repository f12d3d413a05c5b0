// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/transaction_part.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kinds/map/format/shard.hpp"
#include "kinds/map/redo_record.hpp"

namespace espalier::tree {
namespace {

using catalog::StepKind;
using catalog::TransactionStep;

}  // namespace

Result<std::unique_ptr<catalog::TransactionPart>> MapCore::transaction_part(
    std::span<const TransactionStep> steps, catalog::TransactionPlaces& places) {
  auto part = MapTransactionPart::begin(*this, steps, places);
  if (!part) return std::unexpected(part.error());
  return std::unique_ptr<catalog::TransactionPart>(std::move(*part));
}

Result<std::unique_ptr<MapTransactionPart>> MapTransactionPart::begin(
    MapCore& map, std::span<const TransactionStep> steps, catalog::TransactionPlaces& places) {
  if (map.shard != nullptr) {
    const auto has = [own = map.shard->bounds(map.shard->own)](const TransactionStep& step) {
      return own.has(step.key);
    };
    if (!std::ranges::all_of(steps, has)) return fail(Code::wrong_shard, map.shard->own);
  }
  auto thread = TransactionThread::of(places, map.store);
  if (!thread) return std::unexpected(thread.error());
  std::unique_ptr<MapTransactionPart> part(new MapTransactionPart(map, steps, **thread));
  if (auto gathered = part->gather(); !gathered) return std::unexpected(gathered.error());
  return part;
}

Result<void> MapTransactionPart::gather() {
  const std::uint32_t most = map_.geometry.key_bytes_max;
  keys_.resize(steps_.size());
  locked_.reserve(steps_.size());
  std::vector<BatchWrite> writes;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const TransactionStep& step = steps_[i];
    if (step.key.empty() || step.key.size() > most) return fail(Code::key_too_long, most);
    keys_[i].assign(step.key);
    const bool writes_it = step.kind == StepKind::put || step.kind == StepKind::erase;
    if (!writes_it) locked_.push_back({&keys_[i], {}});
    if (step.kind == StepKind::put) writes.push_back({step.key, step.value});
    if (step.kind == StepKind::erase) writes.push_back({step.key, {}, true});
  }
  return prepared_.prepare(writes, {});
}

std::size_t MapTransactionPart::record_bytes() const {
  if (prepared_.writes().empty()) return 0;
  return (WriteRedo::bytes_of(map_, prepared_.writes()) + 7) & ~std::size_t{7};
}

void MapTransactionPart::write_record(std::span<std::byte> to) const {
  if (prepared_.writes().empty()) return;
  WriteRedo::write(map_, prepared_.writes(),
                   to.first(WriteRedo::bytes_of(map_, prepared_.writes())));
}

void MapTransactionPart::stamp_record(std::span<std::byte> records,
                                      std::uint64_t version) const noexcept {
  if (records.empty()) return;
  std::memcpy(records.data() + offsetof(WrittenRecord, version), &version, sizeof version);
}

Result<void> MapTransactionPart::fetch() { return {}; }

Result<void> MapTransactionPart::enter() {
  writer_.emplace(thread_.context(), map_, prepared_.writes(), locked_);
  thread_.enter();
  return writer_->enter();
}

Result<void> MapTransactionPart::lock() {
  writer_->lock();
  return {};
}

NewestState MapTransactionPart::newest(std::size_t step) const {
  return writer_->newest(keys_[step]);
}

std::string_view MapTransactionPart::value_of(const NewestState& state) const {
  return state.out_of_line ? stored_value(map_, state.value) : state.value;
}

bool MapTransactionPart::holds(std::size_t step) {
  return tree::holds(map_, newest(step), steps_[step].condition);
}

std::size_t MapTransactionPart::found_bytes(std::size_t step) {
  const NewestState state = newest(step);
  return state.existed ? value_of(state).size() : 0;
}

void MapTransactionPart::read(std::size_t step, catalog::StepFound& to) {
  const NewestState state = newest(step);
  if (!state.existed) return;
  to.value.assign(value_of(state));
  to.version = state.version;
  to.found = true;
}

Result<bool> MapTransactionPart::prepare() {
  writer_->prepare();
  return true;
}

void MapTransactionPart::publish(std::uint64_t version) noexcept {
  writer_->publish(version);
  prepared_.keep_values();
}

void MapTransactionPart::finish(std::uint64_t version) noexcept {
  BatchOutcome outcome = writer_->finish(version);
  thin_ = std::move(outcome.thin);
  unlock();
}

void MapTransactionPart::unlock() noexcept {
  if (!writer_) return;
  writer_.reset();
  thread_.exit();
}

// Exits the epoch each time, so that merged leaves can be freed meanwhile.
void MapTransactionPart::tidy() noexcept {
  ThreadContext& context = thread_.context();
  for (const SearchKey* key : thin_) {
    bool merged = true;
    while (merged) {
      thread_.enter();
      merged = merge_thin_leaf(context, map_, *key);
      thread_.exit();
    }
  }
  if (map_.store.reclaimer.due()) map_.store.reclaimer.collect(context.cache);
}

}  // namespace espalier::tree
