// SPDX-License-Identifier: Apache-2.0
// Scans in lanes: of any length, in both directions, over any Access. Included where a Walker is
// instantiated.
#pragma once

#include "tree/walk/walker_impl.hpp"

namespace espalier::tree {

template <class P>
void Walker<P>::want_scan_part(A& access, const NodeView& leaf, Lane& lane) const {
  if constexpr (!kInPlace) {
    access.want(leaf.bytes(), 0, map().geometry.node_bytes);
    return;
  }
  const std::uint32_t end = leaf.sorted_end();
  const std::uint64_t item_bytes = leaf.item_bytes();
  const std::uint64_t most = end - map().geometry.sorted_begin;
  const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      most, lane.scan.remaining > most ? most : lane.scan.remaining * item_bytes));
  std::uint32_t begin = map().geometry.sorted_begin;
  const bool inside = lane.key.bytes() != 0 && leaf.covers(lane.key);
  if (inside) begin = std::max(begin, probe_leaf(leaf, lane.key, map().kit).begin);
  if (lane.goal == Goal::backward) {
    const std::uint32_t chunk_end = inside ? probe_leaf(leaf, lane.key, map().kit).end : end;
    begin = chunk_end > wanted + 128 ? chunk_end - wanted - 128 : 0;
    begin = std::max(begin, map().geometry.sorted_begin);
  }
  // The far end of a long range streams in by itself.
  const std::uint32_t chunk = 1u << map().geometry.chunk_shift;
  access.want(leaf.bytes(), begin, std::min({wanted + chunk, end - begin, 1024u}));
  const std::uint32_t log_used = leaf.lock_word().units() * wire::kLogUnitBytes;
  if (log_used != 0) access.want(leaf.bytes(), leaf.log_begin(), log_used);
}

template <class P>
void Walker<P>::begin_scan(Lane& lane, const NodeView& leaf) {
  // A bound that lies beyond the leaf does not bound it.
  const SearchKey* low =
      lane.scan.range.has_low && leaf.covers(lane.scan.low) ? &lane.scan.low : nullptr;
  const SearchKey* high =
      lane.scan.range.has_high && leaf.covers(lane.scan.high) ? &lane.scan.high : nullptr;
  // Without versions the next leaf may reach beyond the cursor: it need not be of the same moment.
  if (!map().versions && lane.key.bytes() != 0) {
    (lane.goal == Goal::forward ? low : high) = &lane.key;
  }
  lane.scan.leaf.begin(leaf, lane.read_version, map().kit, low, high);
  if (kInPlace && lane.goal == Goal::forward) {
    lane.scan.ahead.enter(map(), leaf, lane.scan.leaf.offset(), lane.scan.remaining,
                          high != nullptr, {});
  }
}

// Takes up to `room` items of the leaf, in the order of the scan.
template <class P>
std::uint32_t Walker<P>::take_items(Lane& lane, std::uint32_t room, std::uint64_t& out_of_line) {
  ScanState& scan = lane.scan;
  if (lane.goal == Goal::backward) return scan.leaf.take_back(scan.items, room, out_of_line);
  const std::ptrdiff_t ahead = kInPlace ? scan.ahead.step(map(), scan.leaf.offset()) : 0;
  return scan.leaf.take(scan.items, room, out_of_line, ahead);
}

// Hands over items; false if the scan is over.
template <class P>
bool Walker<P>::deliver(Lane& lane, std::span<const Item> items) {
  lane.answer.items += items.size();
  lane.scan.remaining -= items.size();
  if (lane.finding_floor) {
    if (items.empty()) return true;
    lane.answer.found = true;
    lane.answer.key = items.front().key;
    lane.answer.value = items.front().value;
    lane.answer.version = items.front().version;
    return false;
  }
  if (!items.empty() && !lane.task.handler->items(lane.answer.tag, items)) return false;
  return lane.scan.remaining != 0;
}

// From elsewhere: the scan begins again at an item that was not delivered, at the same version.
template <class P>
void Walker<P>::resume_scan_at(Lane& lane, std::string_view key) {
  if (lane.goal == Goal::forward) {
    lane.scan.low.assign(key);
    lane.scan.range.has_low = true;
    lane.key = lane.scan.low;
  } else {
    lane.scan.high.assign_successor(key);
    lane.scan.range.has_high = true;
    lane.key = lane.scan.high;
  }
}

// What the walk enters next.
template <class P>
void Walker<P>::go_to(Lane& lane, wire::Lid lid) const {
  if constexpr (kInPlace) {
    lane.hint = map().ref(lid);
  } else {
    lane.lid = lid;
  }
}

// Moves the cursor behind this leaf; false if the range ends here.
template <class P>
bool Walker<P>::leave_leaf(Lane& lane, const NodeView& leaf) {
  if (lane.goal == Goal::forward) {
    const std::string_view end = leaf.high_fence();
    if (end.empty()) return false;
    if (lane.scan.range.has_high && compare_keys(lane.scan.high.view(), end) <= 0) return false;
    go_to(lane, leaf.right());
    lane.key.assign(end);
    return true;
  }
  if (planted(Bug::floor_stays_in_leaf) && lane.finding_floor) return false;
  const std::string_view begin = leaf.low_fence();
  if (begin.empty()) return false;
  if (lane.scan.range.has_low && compare_keys(begin, lane.scan.low.view()) <= 0) return false;
  if (planted(Bug::descending_like_ascending) && lane.key.view() == begin) return false;
  go_to(lane, leaf.left());
  lane.key.assign(begin);
  return true;
}

// After the floor of a scan_floor: the scan itself. False if the request is over.
template <class P>
bool Walker<P>::next_leg(Lane& lane) {
  const Request& request = *lane.task.request;
  if (!lane.finding_floor || request.op != Op::scan_floor) return false;
  lane.finding_floor = false;
  lane.scan.low.assign(lane.answer.found ? lane.answer.key : request.key);
  lane.answer.found = false;
  lane.answer.key = lane.answer.value = {};
  lane.answer.version = 0;
  lane.answer.items = 0;
  lane.scan.range = {true, !request.high.empty()};
  if (lane.scan.range.has_high) lane.scan.high.assign_successor(request.high);
  lane.scan.remaining = request.limit == 0 ? ~std::uint64_t{0} : request.limit;
  lane.goal = Goal::forward;
  lane.key = lane.scan.low;
  lane.hint = {};
  lane.lid = 0;
  return !lane.scan.range.has_high || compare_keys(lane.scan.low.view(), lane.scan.high.view()) < 0;
}

}  // namespace espalier::tree
