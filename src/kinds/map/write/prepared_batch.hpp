// SPDX-License-Identifier: Apache-2.0
// Writes and conditions of a caller in the form that the tree needs: sorted, each key once, large
// values stored.
//
// Thread: that of the worker. What it was given outlives it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "kinds/map/write/batch.hpp"
#include "kinds/map/write/staged_value.hpp"
#include "kinds/map/write/structure.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

/// Attempts if memory runs out while snapshots hold some, or did until they expired.
inline constexpr int kExpiringAttempts = 16;

/// Whether snapshots will release memory, possibly after current readers have ended; yields if so.
inline bool others_yield(const StoreCore& store) {
  if (!store.reclaimer.waits_for_snapshots()) return false;
  std::this_thread::yield();
  return true;
}

class PreparedBatch {
 public:
  PreparedBatch(ThreadContext& context, MapCore& map) : context_(context), map_(map) {}
  PreparedBatch(const PreparedBatch&) = delete;
  PreparedBatch& operator=(const PreparedBatch&) = delete;
  ~PreparedBatch() {
    for (const wire::ValueRef& value : stored_) discard_value(context_, map_, value);
  }

  /// Errors: as apply_batch(), except that there may be no writes.
  Result<void> prepare(std::span<const BatchWrite> writes, std::span<const BatchCheck> checks) {
    if (writes.size() > kBatchWritesMax || checks.size() > kBatchChecksMax) {
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
    // Sorted by key, the last write of a key first: the others are dropped.
    std::vector<std::size_t> order(writes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = compare_keys(writes[a].key, writes[b].key);
      return compared != 0 ? compared < 0 : a > b;
    });
    const auto same = [&](std::size_t a, std::size_t b) { return writes[a].key == writes[b].key; };
    order.erase(std::unique(order.begin(), order.end(), same), order.end());
    write_keys_.resize(order.size());
    stored_.reserve(order.size());  // stable, since the intents point into it
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

}  // namespace espalier::tree
