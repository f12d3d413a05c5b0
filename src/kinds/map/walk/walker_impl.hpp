// SPDX-License-Identifier: Apache-2.0
// The walker's functions that do not suspend. Include where a Walker is instantiated.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "kinds/map/walk/find_point.hpp"
#include "kinds/map/walk/walker.hpp"
#include "memory/size_class.hpp"

namespace espalier::tree {

template <class P>
Walker<P>::Walker(P& place, std::uint32_t lanes, const MakeAccess& make_access)
    : place_(place), ready_(lanes), lanes_(lanes) {
  idle_.reserve(lanes);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    lanes_[i].walk = walk(lanes_[i], make_access(i, ready_));
    ready_.push(lanes_[i].walk.handle());
  }
  while (!ready_.empty()) ready_.pop().resume();  // each walk runs up to its first wait
}

template <class P>
void Walker<P>::submit(std::span<const Request> requests, Handler& handler) {
  batches_.add(requests, handler);
  queued_ += requests.size();
  place_.guard().stale();
}

template <class P>
void Walker<P>::submit(const WalkRequest& request) {
  singles_.add(request);
  place_.guard().stale();
}

template <class P>
inline bool Walker<P>::take_request(Lane& lane) {
  if (starved_ != 0) return false;  // walks in flight end first
  if (!singles_.empty()) {
    lane.task = singles_.front();
    singles_.pop();
  } else if (queued_ != 0 && batches_.next()) {
    lane.task = {&batches_.front(), &batches_.handler(), nullptr, {}, {}};
    batches_.pop();
    --queued_;
  } else {
    return false;
  }
  lane.attempts = 0;
  lane.past_cache = lane.task.past_cache;
  ++busy_;
  return true;
}

template <class P>
void Walker<P>::wake_lanes() {
  while (!idle_.empty() && take_request(*idle_.back())) {
    ready_.push(idle_.back()->walk.handle());
    idle_.pop_back();
  }
}

template <class P>
inline bool Walker<P>::turn() {
  wake_lanes();
  bool moved = false;
  for (std::size_t turns = busy_; turns != 0 && !ready_.empty(); --turns) {
    ready_.pop().resume();
    moved = true;
  }
  return moved;
}

template <class P>
std::size_t Walker<P>::poll() {
  const std::uint64_t before = completed_;
  while (completed_ == before && pending() != 0 && turn()) {
  }
  if (pending() == 0) place_.guard().idle();
  return pending();
}

// --- beginning and ending a request ------------------------------------------------------------

template <class P>
bool Walker<P>::prepare(Lane& lane) {
  const Request& request = *lane.task.request;
  lane.answer = {};
  lane.answer.tag = request.tag;
  lane.answer.op = request.op;
  lane.hint = map().holds_node(lane.task.hint) ? lane.task.hint : wire::Ref{};
  lane.lid = 0;
  lane.has_version = false;
  lane.finding_floor = false;
  lane.stored_value = false;
  lane.other_predecessor = {};
  const std::uint32_t key_bytes_max = map().geometry.key_bytes_max;
  const bool scan =
      request.op == Op::scan || request.op == Op::scan_reverse || request.op == Op::scan_floor;
  if (request.key.size() > key_bytes_max || (request.key.empty() && !scan) ||
      request.high.size() > key_bytes_max) {
    refuse(lane, Code::key_too_long, key_bytes_max);
    return false;
  }
  switch (request.op) {
    case Op::get:
      lane.goal = Goal::point;
      lane.key.assign(request.key);
      break;
    case Op::put:
    case Op::insert:
    case Op::update:
    case Op::erase:
      lane.goal = Goal::write;
      lane.key.assign(request.key);
      if constexpr (P::kWrites) {
        if (const Result<void> begun = place_.begin_write(lane); !begun) {
          if (begun.error().code == Code::out_of_memory && starve(lane)) return false;
          refuse(lane, begun.error().code, begun.error().detail);
          return false;
        }
        break;
      } else {
        refuse(lane, Code::unsupported);
        return false;
      }
    case Op::floor:
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor:
      if (!prepare_scan(lane)) return false;
      break;
    default: refuse(lane, Code::invalid_argument); return false;
  }
  lane.tick = place_.guard().begin();
  if constexpr (kInPlace) {  // under the guard, so that an admitted node stays
    if (lane.hint) lane.hint = place_.enter_at(lane.hint);
  }
  if constexpr (LocalReadGuard<typename P::GuardType>) {
    lane.read_version = place_.guard().version();
  }
  if (lane.task.held != nullptr) {
    lane.read_version = lane.task.held->version;
    // Check only now that the guard holds: versions that expire later are kept for this walk.
    if (lane.task.held->has_expired()) {
      refuse(lane, Code::snapshot_expired);
      place_.guard().end(lane.tick);
      return false;
    }
  }
  lane.answer.read_version = lane.read_version;
  if (lane.goal == Goal::write) lane.read_version = kNewest;
  return true;
}

template <class P>
bool Walker<P>::prepare_scan(Lane& lane) {
  const Request& request = *lane.task.request;
  const bool from_floor = request.op == Op::floor || request.op == Op::scan_floor;
  lane.scan.remaining = request.limit == 0 ? kNoLimit : request.limit;
  lane.scan.leaves = 0;
  lane.scan.range = {!request.key.empty(), !request.high.empty()};
  lane.scan.low.assign(request.key);
  lane.scan.high.assign(request.high);
  lane.goal = request.op == Op::scan ? Goal::forward : Goal::backward;
  if (from_floor) {
    // The floor of a key is the first item of a descending walk from its successor.
    lane.finding_floor = true;
    lane.scan.range = {false, true};
    lane.scan.high.assign_successor(request.key);
    lane.scan.remaining = 1;
  }
  if (!from_floor && lane.scan.range.has_high && compare_keys(request.key, request.high) >= 0) {
    lane.scan.remaining = 0;
  }
  lane.key = lane.goal == Goal::forward ? lane.scan.low : lane.scan.high;
  if (lane.goal == Goal::backward && !lane.scan.leaf.reserve_back()) {
    refuse(lane, Code::out_of_memory);
    return false;
  }
  return true;
}

template <class P>
void Walker<P>::complete(Lane& lane) {
  --busy_;
  ++completed_;
  lane.answer.ok = lane.answer.error.code == Code::invalid;
  if constexpr (!kInPlace) completing_tick_ = lane.tick;
  lane.task.handler->done(lane.answer);
  place_.guard().end(lane.tick);
  if constexpr (P::kWrites) {
    if (lane.goal == Goal::write) place_.ended_write();
  }
}

// Out of memory: memory waiting to be reclaimed may suffice, but walks in flight on this core hold
// it. So the lane waits until all of them have ended, and no new walk begins. False: no attempt is
// left.
template <class P>
bool Walker<P>::starve(Lane& lane) {
  if constexpr (P::kWrites) {
    if (lane.attempts == 0) lane.starving_since_ns = base::monotonic_ns();
    if (!place_.may_try_again(lane)) return false;
    ++lane.attempts;
    lane.starved = true;
    ++starved_;
    return true;
  }
  return false;
}

// Reclaims memory; true if the lane may try again.
template <class P>
bool Walker<P>::feed(Lane& lane) {
  if constexpr (P::kWrites) {
    if (!place_.make_room(lane)) return false;
    lane.starved = false;
    --starved_;
  }
  return true;
}

// Completes a request that failed before its walk began.
template <class P>
void Walker<P>::refuse(Lane& lane, Code code, std::uint32_t detail) {
  --busy_;
  ++completed_;
  lane.answer.ok = false;
  lane.answer.error = {code, 0, detail};
  lane.task.handler->done(lane.answer);
}

// --- descent ------------------------------------------------------------------------------------

template <class P>
inline void Walker<P>::want_head(A& access, const std::byte* image, Lane& lane,
                                 Warmth warmth) const {
  const Geometry& g = map().geometry;
  if constexpr (!kInPlace) {
    lane.scan.whole_leaf = lane.level == 0 && wants_whole_leaf(lane);
    if (lane.scan.whole_leaf) {
      access.want(image, 0, g.node_bytes);
    } else {
      access.want(image, 0,
                  lane.level != 0 ? g.groups_begin : std::max(g.groups_begin, g.sorted_begin));
    }
  } else if (warmth != Warmth::cold) {  // an interior node: header, group key prefixes, prefix
    access.want(image, 0, 64);
    access.want(image, g.group_key_prefixes_begin, g.groups_begin - g.group_key_prefixes_begin);
  } else if (lane.goal == Goal::point) {  // all of the head but the header's second line
    access.want(image, 0, 64);
    access.want(image, g.slots_begin, g.places_begin - g.slots_begin);
  } else {
    access.want(image, 0, g.sorted_begin);
  }
}

template <class P>
void Walker<P>::want_fences(A& access, const NodeView& node) const {
  const std::uint32_t end = map().geometry.node_bytes;
  const std::uint32_t begin = std::min(node.fence_begin(), end);
  access.want(node.bytes(), begin, end - begin);
}

// Remote: requests the groups of children that may have the key.
template <class P>
void Walker<P>::want_group(A& access, const NodeView& node, const Lane& lane,
                           const GroupChoice& choice) const {
  const Geometry& g = map().geometry;
  const auto want_one = [&](std::uint32_t group) {
    const std::uint32_t begin = node.group_offset(group);
    if (begin + sizeof(wire::ChildGroup) > g.node_bytes) return;
    access.want(node.bytes(), begin, sizeof(wire::ChildGroup));
  };
  if (from_the_end(lane)) {
    const std::uint32_t children = node.children();
    want_one(children == 0 ? 0 : (children - 1) / wire::kGroupChildren);
    return;
  }
  // With keys that share a prefix, more than two groups may tie.
  for (std::uint32_t group = choice.first; group <= choice.last; ++group) want_one(group);
}

template <class P>
void Walker<P>::want_leaf_part(A& access, const NodeView& leaf, const Lane& lane,
                               const LeafProbe& probe) const {
  const Geometry& g = map().geometry;
  if constexpr (!kInPlace) {
    const PointBytes part = point_bytes(leaf, probe);
    if (part.end > part.begin) access.want(leaf.bytes(), part.begin, part.end - part.begin);
    access.want(leaf.bytes(), part.log_begin, part.log_end - part.log_begin);
    return;
  }
  // In place, the last of the tied chunks usually has the key.
  if (probe.end > probe.begin) access.want(leaf.bytes(), probe.begin, probe.end - probe.begin);
  if (lane.goal == Goal::write) {
    const std::uint32_t used = leaf.lock_word().units() * wire::kLogUnitBytes;
    const std::uint32_t log = std::min(leaf.log_begin(), g.node_bytes);
    access.want(leaf.bytes(), log, std::min(used + 64, g.node_bytes - log));
  } else if (probe.log_matches != 0) {
    if (const auto offset = leaf.log_offset(newest_match(probe.log_matches)); offset != 0) {
      access.want(leaf.bytes(), offset, 64);
    }
  }
}

// Remote: requests what the cached head of a leaf suggests will be needed, together with the head
// itself, which decides.
template <class P>
PointBytes Walker<P>::want_guess(A& access, const std::byte* image, const Lane& lane,
                                 wire::Ref ref) const {
  PointBytes guess;
  if constexpr (kRemembers) {
    if (lane.goal != Goal::point || lane.level != 0) return guess;
    const std::byte* const remembered = access.leaf_head(ref);
    if (remembered == nullptr) return guess;
    const NodeView head(remembered, map().geometry);
    guess = guessed_point_bytes(head, probe_leaf(head, lane.key, map().kit), access.knows_logs());
    want_point(access, image, lane, head, guess, ref);
  }
  return guess;
}

// Remote: if a leaf read by key is larger than a packet, requests the rest that decides about the
// key together with its confirming READ, so that the walk waits once.
template <class P>
PointBytes Walker<P>::want_rest_of_point(A& access, const std::byte* image, const Lane& lane,
                                         wire::Ref ref) const {
  PointBytes rest;
  if constexpr (kRemembers && KeyedAccess<A>) {
    const NodeView head(image, map().geometry);
    const bool leads = access.node_has_come(map().geometry.sorted_begin);
    if (lane.goal != Goal::point || !head.leaf() || !leads) return rest;
    rest = point_bytes(head, probe_leaf(head, lane.key, map().kit));
    want_point(access, image, lane, head, rest, ref);
  }
  return rest;
}

template <class P>
void Walker<P>::want_point(A& access, const std::byte* image, const Lane& lane,
                           const NodeView& head, PointBytes& bytes, wire::Ref ref) const {
  if constexpr (kRemembers) {
    if (bytes.end > bytes.begin) access.want(image, bytes.begin, bytes.end - bytes.begin);
    access.want(image, bytes.log_begin, bytes.log_end - bytes.log_begin);
    if (needs_fences(lane, NodeHead::read(head.bytes()))) {
      bytes.fences_begin = std::min(head.fence_begin(), map().geometry.node_bytes);
      access.want(image, bytes.fences_begin, map().geometry.node_bytes - bytes.fences_begin);
    }
    access.want_proof(ref);
  }
}

// Takes the read version from the map's header, if the header is still the map's.
template <class P>
bool Walker<P>::take_version(Lane& lane, const std::byte* header) const {
  wire::BufferHeader head;
  head.map_id = base::load_shared<std::uint32_t>(header + offsetof(wire::MapHeader, map_id));
  head.generation =
      base::load_shared<std::uint32_t>(header + offsetof(wire::MapHeader, generation));
  head.superseded =
      base::load_shared<std::uint64_t>(header + offsetof(wire::MapHeader, superseded));
  if (!map().same_map(head.map_id, head.generation, head.superseded)) return false;
  if (lane.task.held == nullptr) {
    const bool keep = planted(Bug::stale_read_version) && lane.read_version != 0;
    if (!keep) {
      lane.read_version = base::load_shared<std::uint64_t>(
          header + offsetof(wire::MapHeader, read_version), std::memory_order_acquire);
    }
    lane.answer.read_version = lane.read_version;
  }
  lane.has_version = true;
  return true;
}

// Remote: discards what was read. Returns whether the walk may restart from the root; else it has
// ended with an error.
template <class P>
bool Walker<P>::restart(Lane& lane, Confirmed why) {
  ++restarts_;
  if (why == Confirmed::changed) ++met_changes_;
  lane.hint = {};
  lane.lid = 0;
  lane.past_cache = true;
  lane.other_predecessor = {};
  // Delivered items are of a version whose nodes may be reclaimed with the lease.
  const bool version_is_lost = why == Confirmed::lost && lane.answer.items != 0;
  if (++lane.attempts >= kAttemptsMax || version_is_lost) {
    lane.answer.error = {Code::contended, 0, lane.answer.items != 0 ? 1u : 0u};
    return false;
  }
  // If nothing was delivered, a new version serves as well, and its nodes still exist. A scan
  // restarts too, since its position was found at the old version.
  if (why == Confirmed::lost || (lane.answer.items == 0 && lane.task.held == nullptr)) {
    lane.has_version = false;
    if (lane.goal == Goal::forward || lane.goal == Goal::backward) return prepare_scan(lane);
  }
  return true;
}

// Remembers where an out-of-line value lies; false if the reference cannot be valid.
//
// Remote, its length is bounded by the region and by the longest value, not by the class of its
// buffer, which a reference does not contain. value_is_whole() suffices: nothing but values ever
// begins where a value's buffer begins, so under a confirmed generation the bytes there are the
// header that the host wrote when it chose the class by that very length (store_value). A reference
// with another length has another generation or is invalid; any bytes read beyond the buffer are
// then discarded.
template <class P>
bool Walker<P>::begin_value(Lane& lane, std::string_view reference) {
  std::memcpy(&lane.value, reference.data(), sizeof lane.value);
  if constexpr (kInPlace) return true;
  return lane.value.bytes <= wire::kValueBytesMax &&
         map().holds(wire::Ref{lane.value.ref}.offset(),
                     sizeof(wire::ValueHeader) + lane.value.bytes);
}

// Whether the value's own header agrees with its reference.
template <class P>
bool Walker<P>::value_is_whole(const Lane& lane, const std::byte* value) const {
  if constexpr (kInPlace) return true;
  wire::ValueHeader header;
  std::memcpy(&header, value, sizeof header);
  return header.map_id == map().id && header.bytes == lane.value.bytes &&
         (header.generation & wire::kGenerationMask) == wire::Ref{lane.value.ref}.generation();
}

}  // namespace espalier::tree
