// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/batch.hpp"

#include <algorithm>
#include <new>
#include <thread>
#include <vector>

#include "kinds/map/write/staged_value.hpp"
#include "kinds/map/write/structure.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {
namespace {

// After a collection that freed nothing another may, once others have gone on.
constexpr int kAttempts = 3;
// While snapshots hold memory, or have until they expired.
constexpr int kExpiringAttempts = 16;

// Whether snapshots give memory back, perhaps once readers that were there have gone on.
bool others_yield(const StoreCore& store) {
  if (!store.reclaimer.waits_for_snapshots()) return false;
  std::this_thread::yield();
  return true;
}

// A batch in the form that the tree takes.
class PreparedBatch {
 public:
  PreparedBatch(ThreadContext& context, MapCore& map) : context_(context), map_(map) {}
  PreparedBatch(const PreparedBatch&) = delete;
  PreparedBatch& operator=(const PreparedBatch&) = delete;
  ~PreparedBatch() {
    for (const wire::ValueRef& value : stored_) discard_value(context_, map_, value);
  }

  Result<void> prepare(std::span<const BatchWrite> writes, std::span<const BatchCheck> checks) {
    if (writes.empty() || writes.size() > kBatchWritesMax || checks.size() > kBatchChecksMax) {
      return fail(Code::invalid_argument);
    }
    if (const auto lengths = check_lengths(writes, checks); !lengths) return lengths;
    prepare_checks(checks);
    return prepare_writes(writes);
  }

  /// The stored values now belong to the tree.
  void keep_values() { stored_.clear(); }

  [[nodiscard]] std::span<const WriteIntent> writes() const { return writes_; }
  [[nodiscard]] std::span<const KeyCondition> conditions() const { return conditions_; }

 private:
  Result<void> check_lengths(std::span<const BatchWrite> writes,
                             std::span<const BatchCheck> checks) const {
    const std::uint32_t most = map_.geometry.key_bytes_max;
    const auto bad = [&](const auto& one) { return one.key.empty() || one.key.size() > most; };
    if (std::any_of(writes.begin(), writes.end(), bad) ||
        std::any_of(checks.begin(), checks.end(), bad)) {
      return fail(Code::key_too_long, most);
    }
    for (const BatchWrite& write : writes) {
      if (write.value.size() > wire::kValueBytesMax) {
        return fail(Code::value_too_long, wire::kValueBytesMax);
      }
    }
    return {};
  }

  void prepare_checks(std::span<const BatchCheck> checks) {
    condition_keys_.resize(checks.size());
    conditions_.reserve(checks.size());
    for (std::size_t i = 0; i < checks.size(); ++i) {
      const BatchCheck& check = checks[i];
      condition_keys_[i].assign(check.key);
      conditions_.push_back({&condition_keys_[i], check.condition});
    }
  }

  Result<void> prepare_writes(std::span<const BatchWrite> writes) {
    // By key, and the last write of a key first: the others are dropped.
    std::vector<std::size_t> order(writes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = compare_keys(writes[a].key, writes[b].key);
      return compared != 0 ? compared < 0 : a > b;
    });
    const auto same = [&](std::size_t a, std::size_t b) { return writes[a].key == writes[b].key; };
    order.erase(std::unique(order.begin(), order.end(), same), order.end());
    write_keys_.resize(order.size());
    stored_.reserve(order.size());  // the intents point into it
    writes_.reserve(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const BatchWrite& write = writes[order[i]];
      write_keys_[i].assign(write.key);
      WriteIntent intent;
      intent.op = write.erase ? Op::erase : Op::put;
      intent.key = &write_keys_[i];
      intent.value = write.value;
      if (!write.erase && write.value.size() > map_.geometry.inline_value_bytes_max) {
        const auto value = take_value(write);
        if (!value) return std::unexpected(value.error());
        stored_.push_back(*value);
        intent.out_of_line = true;
        intent.value = {reinterpret_cast<const char*>(&stored_.back()), sizeof(wire::ValueRef)};
      }
      writes_.push_back(intent);
    }
    return {};
  }

  Result<wire::ValueRef> take_value(const BatchWrite& write) {
    if (write.staged != nullptr) return take_staged(map_, *write.staged);
    auto value = store_value(context_, map_, write.value);
    for (int i = 0; !value && i < kExpiringAttempts && others_yield(map_.store); ++i) {
      value = store_value(context_, map_, write.value);
    }
    return value;
  }

  ThreadContext& context_;
  MapCore& map_;
  std::vector<SearchKey> write_keys_;
  std::vector<SearchKey> condition_keys_;
  std::vector<wire::ValueRef> stored_;
  std::vector<WriteIntent> writes_;
  std::vector<KeyCondition> conditions_;
};

// Throws std::bad_alloc with nothing changed.
Result<BatchApplied> prepare_and_apply(ThreadContext& context, MapCore& map,
                                       std::span<const BatchWrite> writes,
                                       std::span<const BatchCheck> checks) {
  PreparedBatch prepared(context, map);
  if (const auto done = prepared.prepare(writes, checks); !done) {
    return std::unexpected(done.error());
  }
  BatchOutcome outcome;
  bool expire = true;  // whether snapshots held some before room was made
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
      context.slot.exit();  // each time, so that what was merged away can be freed meanwhile
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
