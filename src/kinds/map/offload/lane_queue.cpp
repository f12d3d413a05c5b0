// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/lane_queue.hpp"

#include <algorithm>
#include <iterator>

#include "base/assert.hpp"

namespace espalier::offload {

// If another thread charges it between load and update, it stands slightly higher.
void LaneRounds::begin(LaneShare& share) const {
  if (share.walks.fetch_add(1, std::memory_order_relaxed) != 0) return;
  const std::uint64_t present = present_.load(std::memory_order_relaxed);
  std::uint64_t served = share.served.load(std::memory_order_relaxed);
  while (served < present &&
         !share.served.compare_exchange_weak(served, present, std::memory_order_relaxed)) {
  }
}

void LaneRounds::grant(LaneShare& share, bool waited) {
  share.running.fetch_add(1, std::memory_order_relaxed);
  if (!waited) return;
  const std::uint64_t served = share.served.load(std::memory_order_relaxed);
  std::uint64_t present = present_.load(std::memory_order_relaxed);
  while (present < served &&
         !present_.compare_exchange_weak(present, served, std::memory_order_relaxed)) {
  }
}

void LaneRounds::charge(LaneShare& share, std::uint64_t cost) const {
  share.running.fetch_sub(1, std::memory_order_relaxed);
  const std::uint64_t most = present_.load(std::memory_order_relaxed) + kDebtMax;
  std::uint64_t served = share.served.load(std::memory_order_relaxed);
  while (served < most && !share.served.compare_exchange_weak(served, std::min(served + cost, most),
                                                              std::memory_order_relaxed)) {
  }
}

bool LaneQueue::take(const PrincipalRef& account, const Connection& connection, const Walk& walk) {
  LaneShare& share = account->parts.of<LaneShare>();
  if (running_ < lanes_ && principals_.empty()) {
    ++running_;
    rounds_.begin(share);
    rounds_.grant(share, false);
    return true;
  }
  Principals alone;  // spliced in once all memory is allocated
  auto known = by_account_.find(account.get());
  if (known == by_account_.end()) {
    alone.push_back({account, share, grants_, {}});
    known = by_account_.emplace(account.get(), alone.begin()).first;
  }
  Waiting& principal = *known->second;
  try {
    auto of = std::ranges::find(principal.connections, &connection, &OfConnection::connection);
    if (of == principal.connections.end()) {
      std::list<OfConnection> first;
      first.push_back({&connection, {}});
      first.front().walks.push_back(walk);
      principal.connections.splice(principal.connections.end(), first);
    } else {
      of->walks.push_back(walk);
    }
  } catch (...) {
    if (!alone.empty()) by_account_.erase(known);
    throw;
  }
  principals_.splice(principals_.end(), alone);
  ++waiting_;
  rounds_.begin(share);
  return false;
}

// The first has waited longest.
LaneQueue::Principals::iterator LaneQueue::choose() {
  const auto first = principals_.begin();
  if (grants_ - first->grants_before > kStarvedGrants * principals_.size()) return first;
  auto lowest = first;
  std::uint64_t stands = rounds_.standing(first->share);
  std::size_t compared = 1;
  for (auto at = std::next(first); at != principals_.end() && compared < kCompared; ++at) {
    ++compared;
    const std::uint64_t standing = rounds_.standing(at->share);
    if (standing >= stands) continue;
    lowest = at;
    stands = standing;
  }
  return lowest;
}

std::optional<LaneQueue::Walk> LaneQueue::next() {
  if (principals_.empty() || running_ >= lanes_) return std::nullopt;
  const auto principal = choose();
  std::list<OfConnection>& connections = principal->connections;
  OfConnection& of = connections.front();
  const Walk walk = of.walks.front();
  of.walks.pop_front();
  if (of.walks.empty()) {
    connections.pop_front();
  } else {
    connections.splice(connections.end(), connections, connections.begin());
  }
  rounds_.grant(principal->share, true);
  principal->grants_before = ++grants_;
  principals_.splice(principals_.end(), principals_, principal);
  ++running_;
  --waiting_;
  remove_if_empty(principal);
  return walk;
}

void LaneQueue::give_back(PrincipalAccount& account, std::uint64_t cost) {
  ESPALIER_ASSERT(running_ != 0);
  --running_;
  auto& share = account.parts.of<LaneShare>();  // created by take()
  rounds_.charge(share, cost);
  rounds_.end(share);
}

void LaneQueue::remove_if_empty(Principals::iterator principal) {
  if (!principal->connections.empty()) return;
  by_account_.erase(principal->account.get());
  principals_.erase(principal);
}

}  // namespace espalier::offload
