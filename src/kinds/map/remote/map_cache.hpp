// SPDX-License-Identifier: Apache-2.0
// What a reader remembers of one map: the way down to leaves, and, if it is asked to, the heads of
// leaves, which tell where in a leaf a key is.
//
//   root      a copy of its own, which nothing displaces
//   interior  a node gets room when its head was missed, then what else is read of it [Honeycomb
//             §5]; what is kept is of a reference, so it stays true of that, whatever is written
//   leaves    where they are; and of their heads what stays while the leaf lives, in one chunk,
//             with the slots of its log, which tell whether a key may be in that
//
// The way down is a hint: what it comes to is read fresh, its range and versions decide. Read
// versions have no part in it, for they are not known yet where a walk begins.
//
// What the mapping feed tells replaces places, and ends what is kept of the node that was there
// before. Without a feed, or before it has come, entries are found out by the leaf, and the walk
// replaces them.
//
// Differs from [Honeycomb §5]: chunks of nodes are displaced one by one, not whole nodes.
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
  /// `nodes` and `view` outlive it. `leaves`: whether heads of leaves are kept, too.
  MapCache(NodeCache& nodes, const tree::MapView& view, bool leaves);

  /// Leads down from node `lid`, of this level as far as is known, for the cursor's key.
  [[nodiscard]] tree::CachedWay descend(tree::Cursor& cursor, wire::Lid lid, std::uint32_t level);
  /// The lowest node on the way to this key of which it is kept where it is; none: not even the
  /// root's place is.
  [[nodiscard]] wire::Ref lowest_known(const tree::SearchKey& key);
  /// Whether anything of interior node `lid` could be kept: for the root there is always room.
  [[nodiscard]] bool keeps(wire::Lid lid) const {
    return lid == view_.root || nodes_.bytes() != 0;
  }
  /// What is kept of a leaf's head, as an image of the node; null: nothing. Good until the next
  /// call.
  [[nodiscard]] const std::byte* leaf_head(wire::Ref ref);
  /// Whether such a head has the slots of the leaf's log, as they were when it was kept.
  [[nodiscard]] bool knows_logs() const { return slots_bytes_ != 0; }

  // The same in steps, for many gets at a time: each step looks at what the one before has asked
  // for. What is rare is left out.

  /// The group of children in which a get's key is, of the node above its leaf.
  struct GroupAbove {
    wire::Lid leaf = 0;  // is known by now; 0: it is not, and all else counts
    wire::Ref ref{};
    std::uint32_t chunk = 0;   // of that node, in which the group is,
    std::uint32_t begin = 0;   // and where
    std::uint32_t scaled = 0;  // the key, as the children's key prefixes are
    bool first = false;        // it is the node's first group
    const std::byte* group = nullptr;
    std::byte copy[sizeof(wire::ChildGroup)];  // of a group that lies in two chunks
    [[nodiscard]] bool in_two_chunks() const {
      return begin + sizeof(wire::ChildGroup) > NodeCache::kChunkBytes;
    }
  };
  /// False: not all of the way is kept. Where key prefixes tie, separators decide on it.
  [[nodiscard]] bool find_group(const tree::SearchKey& key, GroupAbove& above);
  /// False: it is not kept. Good until something is kept.
  [[nodiscard]] bool bring_group(GroupAbove& above) const;
  /// The leaf to which the key leads; 0: what tells is not kept.
  [[nodiscard]] wire::Lid leaf_in(const tree::SearchKey& key, const GroupAbove& above);
  void prefetch_leaf_head(wire::Ref ref) const { nodes_.prefetch_tags(ref, kLeafHead); }
  /// A leaf's head as it is kept; null: it is not. Good until something is kept.
  [[nodiscard]] const std::byte* kept_leaf_head(wire::Ref ref) const {
    return leaves_ ? nodes_.find(ref, kLeafHead) : nullptr;
  }
  /// The same as leaf_head() makes of that.
  [[nodiscard]] const std::byte* leaf_head_from(const std::byte* kept);

  /// Which leaves follow another one, as the node above it has it.
  struct Neighbours {
    bool known = false;  // that node is kept
    std::uint32_t count = 0;
    wire::Ref above{};
    // Which part of that node is missing to know of more; no bytes: none is.
    std::uint32_t missing_begin = 0;
    std::uint32_t missing_bytes = 0;
  };
  /// The LIDs of the leaves that follow the one of the cursor's key, in the direction of its walk,
  /// up to that which has the bound, if one is given; as many as there is room for.
  [[nodiscard]] Neighbours neighbours(tree::Cursor& cursor, const tree::SearchKey* bound,
                                      std::span<wire::Lid> lids);

  [[nodiscard]] wire::Ref place(wire::Lid lid) const { return nodes_.place(view_.id, lid); }
  void keep_place(wire::Lid lid, wire::Ref ref) { nodes_.keep_place(view_.id, lid, ref); }
  /// Keeps what [begin, end) of an interior node's image has, and where it is. Requires: it was
  /// found to be a node of the map, and its header is at hand.
  void keep_node(wire::Ref ref, const std::byte* image, std::uint32_t begin, std::uint32_t end);
  /// Keeps bytes of an interior node from `begin` on, if its head has room. Requires: whole pieces,
  /// as neighbours() said that they are missing.
  void keep_piece(wire::Ref ref, std::uint32_t begin, std::span<const std::byte> bytes);
  /// Keeps what a leaf's head tells. Requires: that is at hand, and was confirmed.
  void keep_leaf(wire::Ref ref, const std::byte* image);

  /// The feed says that a node has moved: where it is known, that is replaced, and what was kept of
  /// the node before ends. Returns whether it was.
  bool moved(const MappingChange& change);
  /// What was known of places is too old.
  void forget_places();

  /// From here on nodes that are kept are read of the host's memory, where this says so. Null: none
  /// is. It outlives the cache, or is taken from it.
  void set_balancer(Balancer* balancer) { balancer_ = balancer; }

  /// Bytes that ways down took of what is kept, the root left out.
  [[nodiscard]] std::uint64_t taken_bytes() const { return taken_bytes_; }
  /// Ways down that were asked for, and those that led to a leaf.
  [[nodiscard]] std::uint64_t descents() const { return descents_; }
  [[nodiscard]] std::uint64_t hits() const { return hits_; }

 private:
  friend class NodeCacheForger;  // kinds/map/remote/testing/node_cache_forger.hpp

  /// Of a leaf's head, the number that its chunk has.
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
  std::unique_ptr<std::uint64_t[]> scratch_;  // an image, of what is looked at just now
  std::unique_ptr<std::uint64_t[]> root_;
  const std::uint32_t slots_bytes_;  // of a leaf's log, in what is kept of its head; 0: none are
  wire::Ref root_ref_{};
  std::bitset<wire::kNodeBytesMax / NodeCache::kChunkBytes> root_has_;
  // The node through which the last way went last, which is in the scratch image, and which of its
  // children it took.
  wire::Ref above_{};
  std::uint32_t child_ = 0;
  Balancer* balancer_ = nullptr;
  std::uint64_t taken_bytes_ = 0;
  std::uint64_t descents_ = 0;
  std::uint64_t hits_ = 0;
};

}  // namespace espalier::place
