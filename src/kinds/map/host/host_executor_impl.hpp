// SPDX-License-Identifier: Apache-2.0
// The executor's loop. Include where a HostExecutor is instantiated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/walk/find_point.hpp"

namespace espalier::tree {

template <Access A>
HostExecutor<A>::HostExecutor(ThreadContext& context, MapCore& map, std::uint32_t lanes,
                              const MakeAccess& make_access)
    : context_(context),
      map_(map),
      place_(context, map),
      guard_(place_.guard()),
      lanes_(place_, lanes, make_access) {
  for (Group& group : groups_) group.slots.resize(std::clamp(lanes / 2, 1u, kGroup));
  lanes_.expect(kHandedOver + 2 * kGroup);  // requests that groups cannot serve
  waiting_.reserve(2 * groups_[0].slots.size());
}

template <Access A>
void HostExecutor<A>::submit(std::span<const Request> requests, Handler& handler) {
  if (requests.empty()) return;
  batches_.add(requests, handler);
  queued_ += requests.size();
  guard_.stale();
}

template <Access A>
void HostExecutor<A>::submit(const WalkRequest& request) {
  lanes_.submit(request);
}

template <Access A>
void HostExecutor<A>::submit(const Request& request, Handler& handler, wire::Ref hint) {
  batches_.add({&request, 1}, handler, hint);
  ++queued_;
  guard_.stale();
}

// One step of the groups, and one of each busy lane, so that neither delays the other. False if
// nothing progressed.
template <Access A>
inline bool HostExecutor<A>::turn() {
  bool moved = group_has_work();
  if (moved) step_group();
  moved = lanes_.turn() || moved;
  if (!waiting_.empty()) moved = answer_released_writes() || moved;
  return moved;
}

// Waits for other threads to release their versions, or for the disk. If all pending requests wait
// for that, no epoch is held: a disk may stall for long.
template <Access A>
void HostExecutor<A>::await_release(std::uint64_t seen) {
  const bool all_wait = !waiting_.empty() && waiting_.size() == pending();
  if (!all_wait || !guard_.nothing_in_flight()) return std::this_thread::yield();
  guard_.idle();
  map_.clock.pause(seen);
}

template <Access A>
std::size_t HostExecutor<A>::poll() {
  const std::uint64_t before = completed();
  while (completed() == before && pending() != 0) {
    const std::uint64_t seen = map_.clock.seen_durable();
    if (turn()) continue;
    if (waiting_.empty()) break;  // all wait for bytes that arrive elsewhere
    await_release(seen);
  }
  if (pending() == 0) guard_.idle();
  return pending();
}

template <Access A>
std::size_t HostExecutor<A>::advance() {
  if (pending() != 0) turn();
  if (pending() == 0) guard_.idle();
  return pending();
}

template <Access A>
void HostExecutor<A>::drain() {
  while (pending() != 0) {
    const std::uint64_t seen = map_.clock.seen_durable();
    if (!turn()) await_release(seen);
  }
  guard_.idle();
}

}  // namespace espalier::tree
