// SPDX-License-Identifier: Apache-2.0
// A write that has found no memory: how often it tries again, at what pace, and what is done for it
// in between.
#pragma once

#include <cstdint>

namespace espalier::memory {
class BufferCache;
}

namespace espalier::tree {

struct StoreCore;

struct StarvedWrite {
  bool erases = false;
  std::uint32_t attempts = 0;  ///< that it has had
  std::uint64_t since_ns = 0;  ///< when the first of them found none, by base::monotonic_ns()
  bool others_held = false;    ///< whether others held memory before the last of them
};

/// Attempts that follow each other at once; those behind them wait for others, so long each.
inline constexpr std::uint32_t kAttemptsAtOnce = 2;
inline constexpr std::uint64_t kStarvedPaceNs = 100'000;

/// Whether it tries again: twice, and for a while if leases or snapshots hold some, which then end,
/// or expire. An erase more often, for it needs only what earlier ones have freed. That comes as
/// soon as other threads let go of it, and a thread that was interrupted within a walk may take
/// many milliseconds; or when leases that hold it are renewed, or ended. To be asked once for each
/// attempt, which it keeps `others_held` for.
[[nodiscard]] bool may_try_again(const StoreCore& store, StarvedWrite& write);

/// Before its next attempt, which `attempts` counts: frees what can be freed (make_room() in
/// thread_context.hpp), and has leases ended that an erase has waited for long enough.
/// Requires: no lock is held; what the thread itself exposes holds back what waits.
void make_room(StoreCore& store, memory::BufferCache& cache, const StarvedWrite& write);
/// The same, by a thread that has no buffers of its own.
void make_room(StoreCore& store, const StarvedWrite& write);

}  // namespace espalier::tree
