// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/batch.hpp"

#include <new>

#include "kinds/map/write/prepared_batch.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

// After a collection that freed nothing, another may succeed once other threads have advanced.
constexpr int kAttempts = 3;

// Throws std::bad_alloc with nothing changed.
Result<BatchApplied> prepare_and_apply(ThreadContext& context, MapCore& map,
                                       std::span<const BatchWrite> writes,
                                       std::span<const BatchCheck> checks) {
  if (writes.empty()) return fail(Code::invalid_argument);
  PreparedBatch prepared(context, map);
  if (const auto done = prepared.prepare(writes, checks); !done) {
    return std::unexpected(done.error());
  }
  BatchOutcome outcome;
  bool expire = true;  // whether snapshots held memory before reclaiming
  for (int attempt = 0; attempt < kAttempts || (expire && attempt < kExpiringAttempts); ++attempt) {
    context.slot.enter();
    outcome = write_batch(context, map, prepared.writes(), prepared.conditions());
    context.slot.exit();
    if (outcome.status != WriteStatus::out_of_memory) break;
    expire = others_yield(map.store);
    make_room(context, attempt != 0);
  }
  if (outcome.status == WriteStatus::out_of_memory) return fail(Code::out_of_memory);
  if (outcome.status == WriteStatus::refused) return fail(outcome.refusal);
  BatchApplied applied;
  applied.wait_for = outcome.wait_for;
  if (outcome.status == WriteStatus::condition_failed) {
    applied.failed_check = outcome.failed_condition;
    return applied;
  }
  prepared.keep_values();
  for (const SearchKey* key : outcome.thin) {
    bool merged = true;
    while (merged) {
      context.slot.enter();
      merged = merge_thin_leaf(context, map, *key);
      context.slot.exit();  // each time, so that merged leaves can be freed meanwhile
    }
  }
  applied.version = outcome.version;
  applied.existed = outcome.existed;
  return applied;
}

}  // namespace

Result<BatchApplied> apply_batch(ThreadContext& context, MapCore& map,
                                 std::span<const BatchWrite> writes,
                                 std::span<const BatchCheck> checks) noexcept {
  try {
    return prepare_and_apply(context, map, writes, checks);
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::tree
