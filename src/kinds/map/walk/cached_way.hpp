// SPDX-License-Identifier: Apache-2.0
// What a remote access may cache of nodes, so that walks save READs. All of it is hints (DESIGN
// idea 1): a walk enters the tree where they lead, and each node is checked for whether it may
// answer. A misled walk bypasses the cache.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/walk/access.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

/// How far down the cache leads.
struct CachedWay {
  wire::Ref ref{};  // the last known buffer of node `lid`; none: look it up
  wire::Lid lid = 0;
  std::uint32_t level = 0;  // of that node, as cached
  bool misled = false;      // the cache led nowhere: the walk begins at the root
};

/// An access with a cache. Beside RemoteAccess it provides:
///   descend(cursor, lid, level)  the cached way down from node `lid`, without waiting
///   enter(ref, lid, level)       the next image is of this node, of which parts may be cached
///   leaf_head(ref)               the cached head of a leaf, as an image of the node with nothing
///                                else but the begin of the fences; null: not cached
///   knows_logs()                 whether cached heads include the log's slots
///   learn_place(lid, ref)        caches an entry of the page table
///   learn_node(image)            caches the requested parts of an interior node of this map
///   learn_leaf(image)            caches the head of a leaf that was confirmed
///   want_proof(ref)              issues the READ of confirm(ref) now, where READs keep order;
///                                requires: all other bytes of the buffer were requested before
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

/// Bytes of a leaf, besides its head, that decide about one key: [begin, end) of the sorted block,
/// [log_begin, log_end) of the log, and, where key prefixes do not decide, the fences up to the
/// node's end.
struct PointBytes {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t log_begin = 0;
  std::uint32_t log_end = 0;
  std::uint32_t fences_begin = ~std::uint32_t{0};  // all ones: not the fences

  /// Whether these include the needed ones.
  [[nodiscard]] bool have(const PointBytes& needed) const {
    const bool sorted = needed.end <= needed.begin || (begin <= needed.begin && needed.end <= end);
    const bool log = needed.log_end <= needed.log_begin ||
                     (log_begin <= needed.log_begin && needed.log_end <= log_end);
    return sorted && log;
  }
};

/// Computes these bytes from a leaf's head. Requires: the head is at hand.
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

/// The same from a cached head. The sorted block is unchanged. The log may have grown, so two
/// entries beyond its cached end are included; a walk that finds more reads once more. The log is
/// left out if no cached slot had the key's tag: few keys are there, and a walk that finds such a
/// slot now reads once more. If slots are not cached, the usual log size of leaves with small items
/// is assumed.
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
