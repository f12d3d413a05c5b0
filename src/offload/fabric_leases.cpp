// SPDX-License-Identifier: Apache-2.0
// FabricClients of fabric_clients.hpp: whose leases end, so that memory comes back.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "offload/fabric_clients.hpp"
#include "offload/free_dropped.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint64_t kSweepNs = 1'000'000;  // between sweeps of leases that are asked for
constexpr std::uint64_t kLeasedShare = 8;      // of the memory: so much of it leases alone may hold

}  // namespace

// Writes that are short of memory do not wait for the next round of the house.
void FabricClients::sweep_if_asked() {
  const std::uint64_t asked = services_.store.leases.sweeps_asked();
  if (asked == sweeps_seen_) return;
  const std::uint64_t now = options_.now_ns();
  if (now - swept_ns_ < kSweepNs) return;
  sweeps_seen_ = asked;
  sweep_leases(now);
}

// A session whose lease was not renewed is fenced; and, when leases alone hold more than an eighth
// of the memory, those that hold the oldest epoch; and those that keep erases from going on. A map
// that was dropped counts once every lease that is renewed has had the time to come after it.
void FabricClients::sweep_leases(std::uint64_t now_ns) {
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
  if (!late.empty()) {
    for (const auto& [token, session] : sessions_) {
      OneSidedHost& host = *session->connection->one_sided;
      if (late.contains(host.session())) host.fence();
    }
  }
  if (store.dropped.due()) begin_to_free(services_);
}

}  // namespace espalier::offload
