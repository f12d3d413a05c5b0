// SPDX-License-Identifier: Apache-2.0
// The versions that snapshots of a map hold, for its writers: which states of a key may still be
// read.
//
// Thread: any; a lock of its own, inside of which no other is taken.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/try_reserve.hpp"
#include "memory/held_version.hpp"

namespace espalier::hash {

class HeldVersions {
 public:
  /// Reserves room for one more. False: the process has no memory.
  [[nodiscard]] bool reserve() noexcept {
    const std::lock_guard lock(mutex_);
    return base::try_reserve(held_, 1);
  }
  /// Requires: reserve() before; it lasts until remove().
  void add(const memory::HeldVersion& held) noexcept {
    const std::lock_guard lock(mutex_);
    held_.insert(after(held.version), &held);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  void remove(const memory::HeldVersion& held) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(held_, &held);
    count_.fetch_sub(1, std::memory_order_relaxed);
  }
  /// Whether one of [from, to) is held, by a snapshot that has not expired. Cost: a load if there
  /// are no snapshots, else the lock.
  [[nodiscard]] bool any_in(std::uint64_t from, std::uint64_t to) const noexcept {
    if (count_.load(std::memory_order_relaxed) == 0) return false;
    const std::lock_guard lock(mutex_);
    auto each = std::ranges::lower_bound(held_, from, {}, &memory::HeldVersion::version);
    while (each != held_.end() && (*each)->has_expired()) ++each;
    return each != held_.end() && (*each)->version < to;
  }

 private:
  [[nodiscard]] std::vector<const memory::HeldVersion*>::iterator after(std::uint64_t version) {
    return std::ranges::upper_bound(held_, version, {}, &memory::HeldVersion::version);
  }

  mutable std::mutex mutex_;                      // guards the list
  std::vector<const memory::HeldVersion*> held_;  // versions ascend
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace espalier::hash
