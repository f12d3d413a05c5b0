// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/apply_redo.hpp"

#include <new>
#include <vector>

#include "base/assert.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/write/batch.hpp"
#include "kinds/map/write/change.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/structure.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

using catalog::RedoFault;

// No map takes so many, and behind it there are still as many to be taken.
constexpr std::uint64_t kVersionMax = ~std::uint64_t{0} >> 1;

Result<std::vector<BatchWrite>> read_writes(const MapRedo& redo, std::uint32_t key_bytes_max) {
  // No more than can follow, whatever the record says.
  if (redo.writes > kBatchWritesMax || redo.writes > redo.rest.size() / sizeof(WriteFields)) {
    return catalog::corrupt(RedoFault::count);
  }
  std::vector<BatchWrite> writes;
  writes.reserve(redo.writes);
  wire::PayloadReader reader(redo.rest);
  for (std::uint32_t i = 0; i < redo.writes; ++i) {
    const auto write = read_write(reader);
    if (!write) return std::unexpected(write.error());
    if (write->key.size() > key_bytes_max) return catalog::corrupt(RedoFault::key_bytes);
    writes.push_back({write->key, write->value, write->op == WriteOp::erase});
  }
  if (!reader.complete()) return catalog::corrupt(RedoFault::count);
  return writes;
}

// A write that finds no memory makes room, and again once what waited can be freed. At last it
// takes what is put by for erases: leaves are not filled as they were, so what a store of this size
// had may want some more.
constexpr int kApplyAttempts = 4;

WriteOutcome write_until_decided(ThreadContext& context, MapCore& map, WriteIntent intent) {
  Path path;
  path.reserve(MapCore::kLevelsMax);  // so that nothing throws while an epoch is exposed
  for (int starved = 0;;) {
    context.slot.enter();
    const std::byte* const leaf = find_leaf(map, *intent.key, path);
    const WriteOutcome outcome = write_in(context, map, map.ref_of(leaf), intent);
    context.slot.exit();
    if (outcome.status == WriteStatus::busy || outcome.status == WriteStatus::moved) continue;
    if (outcome.status != WriteStatus::out_of_memory || ++starved == kApplyAttempts) return outcome;
    make_room(context, starved > 1);
    intent.takes_spares = starved + 1 == kApplyAttempts;
  }
}

// A write alone goes the way of the one that was recorded: a batch of it takes the structure lock,
// and buffers for more than it needs, which a full store does not have.
Result<void> apply_write(ThreadContext& context, MapCore& map, const BatchWrite& write) {
  SearchKey key;
  key.assign(write.key);
  WriteIntent intent{write.erase ? Op::erase : Op::put, &key, write.value, false, {}};
  wire::ValueRef stored{};
  if (!write.erase && write.value.size() > map.geometry.inline_value_bytes_max) {
    auto value = store_value(context, map, write.value);
    for (int starved = 1; !value && starved < kApplyAttempts; ++starved) {
      make_room(context, true);
      value = store_value(context, map, write.value);
    }
    if (!value) return std::unexpected(value.error());
    stored = *value;
    intent.out_of_line = true;
    intent.value = {reinterpret_cast<const char*>(&stored), sizeof stored};
  }
  const WriteOutcome outcome = write_until_decided(context, map, intent);
  if (intent.out_of_line && !outcome.applied) discard_value(context, map, stored);
  if (outcome.status == WriteStatus::out_of_memory) return fail(Code::out_of_memory);
  ESPALIER_ASSERT(outcome.status == WriteStatus::done);
  if (map.store.reclaimer.due()) map.store.reclaimer.collect(context.cache);
  return {};
}

Result<MapRedo> read_redo_of(const MapCore& map, std::string_view record) {
  auto redo = read_map_redo(record);
  if (!redo) return redo;
  if (redo->map != map.id) return catalog::corrupt(RedoFault::object);
  if ((redo->version != 0) != map.options.versions || redo->version > kVersionMax) {
    return catalog::corrupt(RedoFault::version);
  }
  return redo;
}

// Throws std::bad_alloc with no item changed.
Result<void> read_and_apply(ThreadContext& context, MapCore& map, std::string_view record) {
  const auto redo = read_redo_of(map, record);
  if (!redo) return std::unexpected(redo.error());
  const auto writes = read_writes(*redo, map.geometry.key_bytes_max);
  if (!writes) return std::unexpected(writes.error());
  if (map.dropped.load(std::memory_order_acquire)) return {};
  if (redo->type != RedoType::written) {
    map.clock.go_on_above(redo->version);
    return {};
  }
  if (map.options.versions) map.clock.go_on_above(redo->version - 1);
  if (writes->size() == 1) {
    const auto applied = apply_write(context, map, writes->front());
    if (applied) map.clock.go_on_above(redo->version);  // an erase of nothing takes no version
    return applied;
  }
  const auto applied = apply_batch(context, map, *writes, {});
  return applied ? Result<void>() : std::unexpected(applied.error());
}

}  // namespace

Result<std::optional<SingleRedo>> read_single_redo(const MapCore& map, std::string_view record) {
  const auto redo = read_redo_of(map, record);
  if (!redo) return std::unexpected(redo.error());
  if (redo->type != RedoType::written || redo->writes != 1) return std::optional<SingleRedo>();
  wire::PayloadReader reader(redo->rest);
  const auto write = read_write(reader);
  if (!write) return std::unexpected(write.error());
  if (write->key.size() > map.geometry.key_bytes_max) {
    return catalog::corrupt(RedoFault::key_bytes);
  }
  if (!reader.complete()) return catalog::corrupt(RedoFault::count);
  return SingleRedo{redo->version, write->key, write->value, write->op == WriteOp::erase};
}

Result<void> apply_redo(ThreadContext& context, MapCore& map, std::string_view record) {
  ESPALIER_ASSERT(map.redo() == nullptr);  // the records of what is applied are there
  try {
    return read_and_apply(context, map, record);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::tree
