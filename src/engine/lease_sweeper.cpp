// SPDX-License-Identifier: Apache-2.0
#include "engine/lease_sweeper.hpp"

#include <algorithm>

#include "engine/free_dropped.hpp"
#include "engine/services.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kSweepNs = 1'000'000;  // between requested sweeps
constexpr std::uint64_t kLeasedShare = 8;      // of the memory: what leases alone may hold

}  // namespace

bool LeaseSweeper::any() const { return services_.store.leases.size() != 0; }

void LeaseSweeper::turn(std::uint64_t now_ns) {
  const std::uint64_t asked = services_.store.leases.sweeps_asked();
  if (asked == sweeps_seen_ || now_ns - swept_ns_ < kSweepNs) return;
  sweeps_seen_ = asked;
  sweep(now_ns);
}

// A dropped map counts once every renewed lease has had time to advance past it.
void LeaseSweeper::sweep(std::uint64_t now_ns) {
  swept_ns_ = now_ns;
  tree::StoreCore& store = services_.store;
  const std::uint64_t stamp = store.dropped.oldest_stamp();
  if (std::exchange(dropped_stamp_, stamp) != stamp) dropped_since_ns_ = now_ns;
  const std::uint64_t lost_after_ns = store.leases.terms().lost_after_ns;
  const bool overdue = now_ns - dropped_since_ns_ > lost_after_ns;
  const std::uint64_t held =
      store.reclaimer.bytes_held_by_leases() + (overdue ? store.dropped.bytes() : 0);
  const bool too_much = held > store.region.limit_bytes() / kLeasedShare;
  const std::uint64_t epoch =
      std::max(too_much ? store.leases.oldest() + 1 : 0, store.leases.end_below());
  const std::uint64_t before = now_ns < lost_after_ns ? 0 : now_ns - lost_after_ns;
  std::unordered_set<std::uint64_t> late;
  for (const auto& lease : store.leases.overdue(before, epoch)) late.insert(lease.owner);
  if (!late.empty()) fence_(late);
  if (store.dropped.due()) begin_to_free(services_);
}

}  // namespace espalier::offload
