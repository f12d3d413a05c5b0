// SPDX-License-Identifier: Apache-2.0
#include "store/starved_write.hpp"

#include <utility>

#include "base/clock.hpp"
#include "memory/buffer_cache.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

constexpr std::uint32_t kLeasedAttempts = 16;  // at least, while others hold memory
constexpr std::uint32_t kEraseAttempts = 64;
// Least attempts of an erase while readers hold memory: on a busy machine a second is few of them.
constexpr std::uint32_t kEraseAttemptsMax = 256;
constexpr std::uint64_t kEraseNs = 1'000'000'000;
constexpr std::uint64_t kEraseClaimsNs = 100'000'000;  // after that, leases are ended for it

}  // namespace

// The next attempt finds what others have let go of since the last one.
bool may_try_again(const StoreCore& store, StarvedWrite& write) {
  const bool held = std::exchange(write.others_held, store.others_hold_memory());
  if (write.attempts < kAttemptsAtOnce) return true;
  if (!write.erases && !write.others_held && !held) return false;
  if (write.attempts < (write.erases ? kEraseAttempts : kLeasedAttempts)) return true;
  const std::uint64_t waited = base::monotonic_ns() - write.since_ns;
  if (!write.erases) return waited < kLeasedTimeoutNs;
  const bool waits = store.reclaimer.waits_for_readers() || store.others_hold_memory();
  return waits && (waited < kEraseNs || write.attempts < kEraseAttemptsMax);
}

void make_room(StoreCore& store, memory::BufferCache& cache, const StarvedWrite& write) {
  // Live readers have renewed by now. A reader that still holds what earlier erases freed, below
  // the bound of what leases may hold, may do so for ever: a slow scan, say.
  const bool claims = write.erases && write.attempts > kAttemptsAtOnce &&
                      base::monotonic_ns() - write.since_ns > kEraseClaimsNs &&
                      store.leases_hold_memory();
  if (claims) store.leases.ask_for_sweep(store.leases.oldest() + 1);
  make_room(store, cache, write.attempts > 1);
}

void make_room(StoreCore& store, const StarvedWrite& write) {
  memory::BufferCache cache(store.pool);
  make_room(store, cache, write);
}

}  // namespace espalier::tree
