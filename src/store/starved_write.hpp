// SPDX-License-Identifier: Apache-2.0
// Retry policy of a write that finds no memory: how often and at what pace it tries again, and what
// is freed in between.
#pragma once

#include <cstdint>

namespace espalier::memory {
class BufferCache;
}

namespace espalier::tree {

struct StoreCore;

struct StarvedWrite {
  bool erases = false;
  std::uint32_t attempts = 0;  ///< made so far
  std::uint64_t since_ns = 0;  ///< when the first found none, by base::monotonic_ns()
  bool others_held = false;    ///< whether others held memory before the last attempt
};

/// Attempts without a pause between them; each later one first waits for kStarvedPaceNs.
inline constexpr std::uint32_t kAttemptsAtOnce = 2;
inline constexpr std::uint64_t kStarvedPaceNs = 100'000;

/// Whether the write tries again. Each write has two attempts; while leases or snapshots hold
/// memory it has more, for a bounded time, since leases end and snapshots expire. An erase has more
/// still, for it needs only what earlier erases freed: that is free as soon as other threads leave
/// their walks (a preempted thread may take many milliseconds), and leases are renewed or ended.
/// Call once for each attempt: it updates `others_held`.
[[nodiscard]] bool may_try_again(const StoreCore& store, StarvedWrite& write);

/// Called before the next attempt, which `attempts` counts: frees what can be freed (make_room() in
/// thread_context.hpp), and has leases ended that an erase has waited for long enough. Requires: no
/// lock is held; epochs that the calling thread exposes hold memory back.
void make_room(StoreCore& store, memory::BufferCache& cache, const StarvedWrite& write);
/// The same, for a thread that has no buffers of its own.
void make_room(StoreCore& store, const StarvedWrite& write);

}  // namespace espalier::tree
