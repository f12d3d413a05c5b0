// SPDX-License-Identifier: Apache-2.0
// A reader's cache of one map: the ways down to leaves and, optionally, the heads of leaves, which
// locate a key within its leaf.
//
//   root      a separate copy, never evicted
//   interior  a node is admitted when its head was missed, then the other parts read of it
//             [Honeycomb §5]; keyed by reference, so entries stay true of that node despite writes
//   leaves    their places; and of their heads what is constant while the leaf lives, in one chunk,
//             with the slots of its log, which tell whether the log may have a key
//
// The way down is a hint: the leaf is read, and its range and versions decide. Read versions play
// no part in it, since a walk begins before it has one.
//
// Entries of the mapping feed replace places and drop what is cached of the node's old state.
// Without a feed, or before its entries arrive, a stale entry is detected at the leaf, and the walk
// replaces it.
//
// Differs from [Honeycomb §5]: chunks of nodes are evicted one by one, not whole nodes.
//
// Thread: one.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kinds/map/remote/balancer.hpp"
#include "kinds/map/remote/feed_cursor.hpp"
#include "kinds/map/remote/node_cache.hpp"
#include "kinds/map/walk/cached_way.hpp"
#include "kinds/map/walk/map_view.hpp"

namespace espalier::place {

class MapCache {
 public:
  /// `nodes` and `view` outlive it. `leaves`: whether heads of leaves are cached too.
  MapCache(NodeCache& nodes, const tree::MapView& view, bool leaves);

  /// Descends from node `lid`, of this level by the cache, for the cursor's key.
  [[nodiscard]] tree::CachedWay descend(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level);
  /// The lowest node on the way to this key whose place is cached; none: not even the root's is.
  [[nodiscard]] wire::Ref lowest_known(const tree::SearchKey& key);
  /// Whether chunks of interior node `lid` can be cached: the root always has room.
  [[nodiscard]] bool keeps(wire::Lid lid) const {
    return lid == view_.root || nodes_.bytes() != 0;
  }
  /// The cached part of a leaf's head, as an image of the node; null: not cached. Valid until the
  /// next call.
  [[nodiscard]] const std::byte* leaf_head(wire::Ref ref);
  /// Whether such a head has the slots of the leaf's log, as of when it was cached.
  [[nodiscard]] bool knows_logs() const { return slots_bytes_ != 0; }

  // The same in steps, for many gets at a time: each step reads what the one before has prefetched.
  // Rare cases are left out.

  /// The group of children that has a get's key, in the node above its leaf.
  struct GroupAbove {
    wire::Lid leaf = 0;  // known already; 0: the other fields lead to it
    wire::Ref ref{};
    std::uint32_t chunk = 0;   // the node's chunk with the group
    std::uint32_t begin = 0;   // offset of the group in it
    std::uint32_t scaled = 0;  // the key, normalised for the node
    bool first = false;        // whether it is the node's first group
    const std::byte* group = nullptr;
    std::byte copy[sizeof(wire::ChildGroup)];  // of a group that spans two chunks
    [[nodiscard]] bool in_two_chunks() const {
      return begin + sizeof(wire::ChildGroup) > NodeCache::kChunkBytes;
    }
  };
  /// False: some part of the way is not cached. Where key prefixes tie, separators decide.
  [[nodiscard]] bool find_group(const tree::SearchKey& key, GroupAbove& above);
  /// False: not cached. Valid until something is added to the cache.
  [[nodiscard]] bool bring_group(GroupAbove& above) const;
  /// The leaf that has the key; 0: the deciding bytes are not cached.
  [[nodiscard]] wire::Lid leaf_in(const tree::SearchKey& key, const GroupAbove& above);
  void prefetch_leaf_head(wire::Ref ref) const { nodes_.prefetch_tags(ref, kLeafHead); }
  /// A leaf's head as it is cached; null: it is not. Valid until something is added to the cache.
  [[nodiscard]] const std::byte* kept_leaf_head(wire::Ref ref) const {
    return leaves_ ? nodes_.find(ref, kLeafHead) : nullptr;
  }
  /// leaf_head() made from a cached head.
  [[nodiscard]] const std::byte* leaf_head_from(const std::byte* kept);

  /// The leaves that follow another one, by the node above it.
  struct Neighbours {
    bool known = false;  // that node is cached
    std::uint32_t count = 0;
    wire::Ref above{};
    // The part of that node needed to know more leaves; no bytes: none.
    std::uint32_t missing_begin = 0;
    std::uint32_t missing_bytes = 0;
  };
  /// The LIDs of the leaves that follow that of the cursor's key, in the direction of its walk, up
  /// to the leaf with the bound, if given; at most `lids.size()`.
  [[nodiscard]] Neighbours neighbours(tree::Cursor& cursor, const tree::SearchKey* bound,
                                      std::span<wire::Lid> lids);

  [[nodiscard]] wire::Ref place(wire::Lid lid) const { return nodes_.place(view_.id, lid); }
  void keep_place(wire::Lid lid, wire::Ref ref) { nodes_.keep_place(view_.id, lid, ref); }
  /// Caches [begin, end) of an interior node's image, and its place. Requires: it was validated as
  /// a node of the map, and its header is at hand.
  void keep_node(wire::Ref ref, const std::byte* image, std::uint32_t begin, std::uint32_t end);
  /// Caches bytes of an interior node from `begin` on, if its head is cached. Requires: whole
  /// pieces, as requested by neighbours().
  void keep_piece(wire::Ref ref, std::uint32_t begin, std::span<const std::byte> bytes);
  /// Caches a leaf's head. Requires: it is at hand, and was confirmed.
  void keep_leaf(wire::Ref ref, const std::byte* image);

  /// Applies a change of the mapping feed: replaces a cached place and drops the node's old state.
  /// Returns whether the place was cached.
  bool moved(const MappingChange& change);
  /// Drops all places: they are too old.
  void forget_places();

  /// Lets the balancer choose cached nodes to be read from the host's memory; null: none. It
  /// outlives the cache, or is removed before.
  void set_balancer(Balancer* balancer) { balancer_ = balancer; }

  /// Bytes that descents took from the cache, without the root.
  [[nodiscard]] std::uint64_t taken_bytes() const { return taken_bytes_; }
  /// Descents that were tried, and those that led to a leaf.
  [[nodiscard]] std::uint64_t descents() const { return descents_; }
  [[nodiscard]] std::uint64_t hits() const { return hits_; }

 private:
  friend class NodeCacheForger;  // kinds/map/remote/testing/node_cache_forger.hpp

  /// Chunk number of a leaf's head.
  static constexpr std::uint32_t kLeafHead = ~std::uint32_t{0};

  [[nodiscard]] const std::byte* find(wire::Ref ref, std::uint32_t chunk) const;
  void keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes);
  [[nodiscard]] bool goes_to_host(const tree::CachedWay& way);
  [[nodiscard]] bool bring(wire::Ref ref, std::uint32_t begin, std::uint32_t end);
  [[nodiscard]] bool bring_groups(const tree::Cursor& cursor, const tree::NodeView& node,
                                  const tree::GroupChoice& choice, wire::Ref ref);
  [[nodiscard]] bool step_down(tree::Cursor& cursor, tree::CachedWay& way);
  [[nodiscard]] tree::CachedWay go_down(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level,
                                        bool balanced);
  [[nodiscard]] std::byte* scratch() { return reinterpret_cast<std::byte*>(scratch_.get()); }
  [[nodiscard]] std::byte* root_bytes() const { return reinterpret_cast<std::byte*>(root_.get()); }
  [[nodiscard]] wire::Lid child_in(const tree::SearchKey& key, const GroupAbove& above) const;
  [[nodiscard]] wire::Lid tied_child(const tree::SearchKey& key, wire::Ref ref) const;
  [[nodiscard]] std::uint32_t slots_bytes() const;
  [[nodiscard]] std::uint32_t chunk_heads_bytes() const;

  NodeCache& nodes_;
  const tree::MapView& view_;
  const bool leaves_;
  std::unique_ptr<std::uint64_t[]> scratch_;  // image of the node in use
  std::unique_ptr<std::uint64_t[]> root_;
  const std::uint32_t slots_bytes_;  // bytes of log slots in a cached leaf head; 0: none
  wire::Ref root_ref_{};
  std::bitset<wire::kNodeBytesMax / NodeCache::kChunkBytes> root_has_;
  // The last node of the last descent, which is in the scratch image, and the child taken there.
  wire::Ref above_{};
  std::uint32_t child_ = 0;
  Balancer* balancer_ = nullptr;
  std::uint64_t taken_bytes_ = 0;
  std::uint64_t descents_ = 0;
  std::uint64_t hits_ = 0;
};

}  // namespace espalier::place
