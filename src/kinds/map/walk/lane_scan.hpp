// SPDX-License-Identifier: Apache-2.0
// Scans in lanes: of any length, in both directions, over any Access. Include where a Walker is
// instantiated.
#pragma once

#include "kinds/map/walk/walker_impl.hpp"

namespace espalier::tree {

// The far bound of the scan; null: none.
template <class P>
const SearchKey* Walker<P>::far_bound(const Lane& lane) {
  const ScanState& scan = lane.scan;
  if (lane.goal == Goal::forward) return scan.range.has_high ? &scan.high : nullptr;
  return scan.range.has_low ? &scan.low : nullptr;
}

template <class P>
void Walker<P>::want_scan_part(A& access, const NodeView& leaf, Lane& lane) const {
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
  // Hardware prefetch streams the far end of a long range.
  const std::uint32_t chunk = 1u << map().geometry.chunk_shift;
  access.want(leaf.bytes(), begin, std::min({wanted + chunk, end - begin, 1024u}));
  const std::uint32_t log_used = leaf.lock_word().units() * wire::kLogUnitBytes;
  if (log_used != 0) access.want(leaf.bytes(), leaf.log_begin(), log_used);
}

// Whether a scan probably takes all items of a leaf, so that the whole leaf can be requested: it
// takes at least that many, and is not known to end there.
template <class P>
bool Walker<P>::wants_whole_leaf(const Lane& lane) const {
  constexpr std::uint32_t kSmallItem = 32;
  if (lane.goal != Goal::forward && lane.goal != Goal::backward) return false;
  return lane.scan.remaining >= map().geometry.node_bytes / kSmallItem &&
         (far_bound(lane) == nullptr || lane.answer.items != 0);
}

// Remote: the number of leaves behind the next one from which the scan probably takes items.
// Without a limit the client may stop at any item, so read-ahead grows with the leaves passed, plus
// two.
template <class P>
std::uint32_t Walker<P>::leaves_ahead(const Lane& lane) const {
  constexpr std::uint64_t kSmallItem = 32;
  constexpr std::uint64_t kMost = 1024;
  const ScanState& scan = lane.scan;
  const bool scans = lane.goal == Goal::forward || lane.goal == Goal::backward;
  if (!scans || lane.finding_floor || lane.past_cache || scan.remaining == 0) return 0;
  if (scan.remaining > kNoLimit / 2) return std::min<std::uint32_t>(scan.leaves, kMost) + 2;
  // The first leaf may have few items in the range, and says little about the others.
  constexpr std::uint32_t kFew = 3;
  const std::uint64_t guess = map().geometry.node_bytes / kSmallItem;
  std::uint64_t of_each = scan.leaves == 0 ? guess : lane.answer.items / scan.leaves;
  if (scan.leaves < kFew) of_each = std::max(of_each, guess / 2);
  return static_cast<std::uint32_t>(
      std::min((scan.remaining - 1) / std::max<std::uint64_t>(of_each, 1), kMost));
}

// Remote: requests the leaves that follow together with the leaf and, for a leaf read whole, its
// confirming READ.
template <class P>
void Walker<P>::want_ahead(A& access, Lane& lane, wire::Ref ref) const {
  if constexpr (AheadAccess<A>) {
    if (lane.level != 0) return;
    if (const std::uint32_t leaves = leaves_ahead(lane); leaves != 0) {
      access.want_ahead(lane, far_bound(lane), leaves);
    }
    if (lane.scan.whole_leaf) access.want_proof(ref);
  }
}

// Remote, where bytes are costly: requests of a leaf whose head is at hand the chunks where the
// scan begins and its items probably end, the log, and the fences.
template <class P>
void Walker<P>::want_window(A& access, const NodeView& leaf, Lane& lane) const {
  const Geometry& g = map().geometry;
  ScanState& scan = lane.scan;
  const bool forward = lane.goal == Goal::forward;
  scan.bound = nullptr;
  scan.delivered = {};
  if (scan.whole_leaf) {
    scan.window = {g.sorted_begin, leaf.sorted_end()};
    return;
  }
  const std::uint64_t most = g.node_bytes;
  const std::uint64_t few = scan.remaining < most ? scan.remaining * leaf.item_bytes() : most;
  // The first key lies anywhere in its chunk. A floor lies in the same chunk unless erased.
  const std::uint64_t before = lane.finding_floor ? 0 : 1u << g.chunk_shift;
  const std::uint64_t bytes = std::min(most, few + before);
  // Whether the leaf covers the far bound is certain only once the fences have arrived.
  const NodeHead head = NodeHead::read(leaf.bytes());
  const SearchKey* far = far_bound(lane);
  if (far != nullptr &&
      (far->prefix() <= head.low_key_prefix || far->prefix() >= head.high_key_prefix)) {
    far = nullptr;
  }
  const SearchKey* from = lane.key.bytes() != 0 ? &lane.key : nullptr;
  scan.window = forward ? window_above(leaf, map().kit, from, far, bytes)
                        : window_below(leaf, map().kit, far, from, bytes);
  if (!scan.window.empty()) {
    access.want(leaf.bytes(), scan.window.begin, scan.window.end - scan.window.begin);
  }
  if (const std::uint32_t used = leaf.lock_word().units() * wire::kLogUnitBytes; used != 0) {
    const std::uint32_t log = std::min(leaf.log_begin(), g.node_bytes);
    access.want(leaf.bytes(), log, std::min(used + 64, g.node_bytes - log));
  }
  if (!needs_fences(lane, head)) want_fences(access, leaf);
}

// The fences have arrived: decides whether the leaf covers the far bound. If some chunks of the
// bound were read, requests the others.
template <class P>
void Walker<P>::want_bound(A& access, const NodeView& leaf, Lane& lane) const {
  ScanState& scan = lane.scan;
  scan.bound = far_bound(lane);
  if (scan.bound != nullptr && !leaf.covers(*scan.bound)) scan.bound = nullptr;
  const LeafWindow wide = widened(leaf, map().kit, scan.window, scan.bound);
  if (wide == scan.window) return;
  access.want(leaf.bytes(), wide.begin, wide.end - wide.begin);
  scan.window = wide;
}

// The items so far did not suffice: requests the rest of the range in this leaf. False: none.
template <class P>
bool Walker<P>::want_rest(A& access, const NodeView& leaf, Lane& lane) const {
  ScanState& scan = lane.scan;
  const LeafWindow rest = lane.goal == Goal::forward
                              ? rest_above(leaf, map().kit, scan.window, scan.bound)
                              : rest_below(leaf, map().kit, scan.window, scan.bound);
  if (rest.empty()) return false;
  access.want(leaf.bytes(), rest.begin, rest.end - rest.begin);
  scan.window = rest;
  return true;
}

// The rest keeps both bounds: log entries placed at its begin may lie before the near one.
template <class P>
void Walker<P>::begin_window(Lane& lane, const NodeView& leaf) {
  ScanState& scan = lane.scan;
  const bool forward = lane.goal == Goal::forward;
  const SearchKey* from = lane.key.bytes() != 0 ? &lane.key : nullptr;
  scan.leaf.begin_window(leaf, lane.read_version, map().kit, scan.window,
                         forward ? from : scan.bound, forward ? scan.bound : from);
}

template <class P>
void Walker<P>::begin_scan(Lane& lane, const NodeView& leaf) {
  // A bound outside the leaf does not apply.
  const SearchKey* low =
      lane.scan.range.has_low && leaf.covers(lane.scan.low) ? &lane.scan.low : nullptr;
  const SearchKey* high =
      lane.scan.range.has_high && leaf.covers(lane.scan.high) ? &lane.scan.high : nullptr;
  // Without versions the next leaf may overlap the cursor: it may be of another moment.
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

// Delivers items; false if the scan is over.
template <class P>
bool Walker<P>::deliver(Lane& lane, std::span<const Item> items) {
  lane.answer.items += items.size();
  if (!kInPlace && !items.empty()) lane.scan.delivered = items.back().key;
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

// Remote: restarts the scan at an item that was not delivered, at the same version.
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

// Restarts the scan behind the last delivered item, at the same version.
template <class P>
void Walker<P>::resume_scan_behind(Lane& lane, std::string_view key) {
  if (lane.goal == Goal::forward) {
    lane.scan.low.assign_successor(key);
    lane.scan.range.has_low = true;
    lane.key = lane.scan.low;
  } else {
    lane.scan.high.assign(key);
    lane.scan.range.has_high = true;
    lane.key = lane.scan.high;
  }
}

// Sets where the walk continues.
template <class P>
void Walker<P>::go_to(Lane& lane, wire::Lid lid) const {
  if constexpr (kInPlace) {
    lane.hint = map().ref(lid);
  } else {
    lane.lid = lid;
  }
}

// Advances the cursor past this leaf; false if the range ends here.
template <class P>
bool Walker<P>::leave_leaf(Lane& lane, const NodeView& leaf) {
  if constexpr (!kInPlace) {
    ++lane.scan.leaves;
    lane.past_cache = false;  // a wrong hint for this leaf does not concern the next
  }
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

// After the floor of a scan_floor: begins the scan proper. False if the request is over.
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
  lane.scan.remaining = request.limit == 0 ? kNoLimit : request.limit;
  lane.scan.leaves = 0;
  lane.goal = Goal::forward;
  lane.key = lane.scan.low;
  lane.hint = {};
  lane.lid = 0;
  return !lane.scan.range.has_high || compare_keys(lane.scan.low.view(), lane.scan.high.view()) < 0;
}

}  // namespace espalier::tree
