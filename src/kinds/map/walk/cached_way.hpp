// SPDX-License-Identifier: Apache-2.0
// What an access from elsewhere may remember of nodes, so that a walk need not ask for what it was
// told before. It is all hints (DESIGN idea 1): a walk enters the tree where they lead, and each
// node that it comes to says itself whether it may answer. A walk that was misled goes on past
// what is remembered.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/walk/access.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

/// How far down what is remembered leads.
struct CachedWay {
  wire::Ref ref{};  // where node `lid` was seen; none: that is to be looked up
  wire::Lid lid = 0;
  std::uint32_t level = 0;  // of that node, as far as is known
  bool misled = false;      // it led nowhere, and the walk begins at the root
};

/// An access that remembers. It gives, besides what RemoteAccess does:
///   descend(cursor, lid, level)  the way down from node `lid`, without waiting
///   enter(ref, lid, level)       the next image is of this node, of which it may remember parts
///   leaf_head(ref)               what it remembers of a leaf's head, as an image of the node in
///                                which nothing else is but where the fences begin; null: nothing
///   knows_logs()                 whether such a head has the log's slots, as they were
///   learn_place(lid, ref)        the page table said so
///   learn_node(image)            what was wanted of an interior node of this map has come
///   learn_leaf(image)            the same of a leaf's head, which was confirmed
///   want_proof(ref)              confirm(ref) is to need no wait of its own, where READs keep
///                                their order; requires: all else of the buffer is wanted by now
template <class A>
concept RememberingAccess = RemoteAccess<A> &&
    requires(A access, Cursor& cursor, wire::Lid lid, std::uint32_t level, wire::Ref ref,
             const std::byte* image) {
  { access.descend(cursor, lid, level) } -> std::same_as<CachedWay>;
  access.enter(ref, lid, level);
  { access.leaf_head(ref) } -> std::same_as<const std::byte*>;
  { access.knows_logs() } -> std::same_as<bool>;
  access.learn_place(lid, ref);
  access.learn_node(image);
  access.learn_leaf(image);
  access.want_proof(ref);
};

/// Bytes of a leaf that decide about one key, its head aside: [begin, end) of the sorted block,
/// [log_begin, log_end), and, where key prefixes do not decide about its range, the fences, which
/// end the node.
struct PointBytes {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t log_begin = 0;
  std::uint32_t log_end = 0;
  std::uint32_t fences_begin = ~std::uint32_t{0};  // all ones: not the fences

  /// Whether these are among them.
  [[nodiscard]] bool have(const PointBytes& needed) const {
    const bool sorted = needed.end <= needed.begin || (begin <= needed.begin && needed.end <= end);
    const bool log = needed.log_end <= needed.log_begin ||
                     (log_begin <= needed.log_begin && needed.log_end <= log_end);
    return sorted && log;
  }
};

/// What a leaf's head says of these bytes. Requires: the head is at hand.
[[nodiscard]] inline PointBytes point_bytes(const NodeView& leaf, const LeafProbe& probe) {
  const Geometry& g = leaf.geometry();
  PointBytes bytes;
  bytes.begin = probe.begin;
  bytes.end = probe.end;
  if (probe.tied) {
    const std::uint32_t first = probe.rank.below == 0 ? 0 : probe.rank.below - 1;
    bytes.begin = g.sorted_begin + (first << g.chunk_shift);
  }
  if (probe.log_matches != 0) {
    const std::uint32_t used = leaf.lock_word().units() * wire::kLogUnitBytes;
    bytes.log_begin = std::min(leaf.log_begin(), g.node_bytes);
    bytes.log_end = bytes.log_begin + std::min(used + 64, g.node_bytes - bytes.log_begin);
  }
  return bytes;
}

/// The same from a head that is remembered: the sorted block is what it was. The log may have grown
/// since, so what it held then is asked for and two entries more: a walk that finds more asks once
/// again. It is not asked for where no slot of it had the key's tag: few keys are there, and a walk
/// that finds such a slot now asks once more. Where slots are not remembered, as much is asked for
/// as the logs of leaves with small items hold.
[[nodiscard]] inline PointBytes guessed_point_bytes(const NodeView& leaf, const LeafProbe& probe,
                                                    bool knows_log) {
  const Geometry& g = leaf.geometry();
  PointBytes bytes = point_bytes(leaf, probe);
  if (knows_log && probe.log_matches == 0) return bytes;
  const wire::LockWord lock = leaf.lock_word();
  const std::uint32_t used = lock.units() * wire::kLogUnitBytes;
  const std::uint32_t wanted =
      knows_log ? used + 2 * used / std::max(lock.entries(), 1u) : g.log_bytes;
  bytes.log_begin = std::min(leaf.log_begin(), g.node_bytes);
  bytes.log_end = bytes.log_begin + std::min(wanted + 64, g.node_bytes - bytes.log_begin);
  return bytes;
}

}  // namespace espalier::tree
