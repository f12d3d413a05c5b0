// SPDX-License-Identifier: Apache-2.0
// Finding a key in a leaf: chunk by heads, item by comparison, log by tags.
//
// Split in two so that a walk can wait in between: `probe` needs only the leaf's header, slots, heads
// and starts (all in its first 512 bytes) and says which bytes to read next.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "tree/node_view.hpp"

namespace espalier::tree {

/// What the head of a leaf says about a key.
struct LeafProbe {
  Rank rank;                     // of the key's head among the chunk heads
  std::uint32_t chunk = 0;       // the chunk where the key is, unless `tied`
  std::uint32_t begin = 0;       // its items lie in [begin, end); empty if the key is below all
  std::uint32_t end = 0;
  bool tied = false;             // several chunks begin with this head: keys must decide
  std::uint64_t log_matches = 0;  // log slots that may carry the key
};

/// Where a key is, or would be, in the sorted block.
struct Position {
  std::uint32_t offset = 0;  // of the first item with a key >= the key; sorted_end if there is none
  bool exact = false;        // that item has the key
};

[[nodiscard]] inline std::uint16_t head16(const NodeView& node, const SearchKey& key) {
  return static_cast<std::uint16_t>(node.head_map()(key.head_after(node.prefix_bytes())) >> 48);
}

inline void set_chunk(const NodeView& leaf, std::uint32_t chunk, LeafProbe& probe) {
  probe.chunk = chunk;
  probe.begin = leaf.chunk_start(chunk);
  probe.end = leaf.chunk_end(chunk);
}

[[nodiscard]] inline LeafProbe probe_leaf(const NodeView& leaf, const SearchKey& key,
                                          const SearchKit& kit, wire::LockWord lock) {
  LeafProbe probe;
  const std::uint32_t chunks = leaf.chunks();
  probe.rank = kit.rank16(leaf.bytes() + leaf.geometry().heads_begin, chunks, head16(leaf, key));
  probe.log_matches = leaf.matching_slots(kit, leaf.log_entries(lock), key.tag());
  probe.tied = probe.rank.below_or_equal != probe.rank.below;
  const std::uint32_t at = probe.tied ? probe.rank.below_or_equal : probe.rank.below;
  if (at != 0) {
    set_chunk(leaf, at - 1, probe);
  } else {
    probe.begin = probe.end = leaf.geometry().sorted_begin;
  }
  return probe;
}

/// Decides between chunks that begin with the key's head, by comparing first keys.
inline void resolve_tie(const NodeView& leaf, const SearchKey& key, LeafProbe& probe) {
  std::uint32_t low = probe.rank.below;  // chunks before it begin below the key
  std::uint32_t high = probe.rank.below_or_equal;
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    std::uint32_t chunk = middle;
    while (chunk < high && leaf.chunk_start(chunk) == 0) ++chunk;
    const bool below = chunk < high && compare_keys(leaf.sorted_item(leaf.chunk_start(chunk)).key,
                                                    key.view()) <= 0;
    if (below) {
      low = chunk + 1;
    } else {
      high = middle;
    }
  }
  while (low > 0 && leaf.chunk_start(low - 1) == 0) --low;
  probe.tied = false;
  if (low == 0) {
    probe.begin = probe.end = leaf.geometry().sorted_begin;
  } else {
    set_chunk(leaf, low - 1, probe);
  }
}

/// The first item >= key. Requires: the probe's chunk is at hand (and, if tied, all tied chunks).
[[nodiscard]] inline Position lower_bound(const NodeView& leaf, const SearchKey& key,
                                          LeafProbe probe) {
  if (probe.tied) resolve_tie(leaf, key, probe);
  const std::uint32_t prefix = leaf.prefix_bytes();
  std::uint32_t offset = probe.begin;
  while (offset < probe.end && offset != 0) {
    const SortedItem item = leaf.sorted_item(offset);
    const std::size_t equal = item.key.size() < prefix ? 0 : prefix;
    const int order = compare_keys(item.key, key.view(), equal);
    if (order >= 0) return {offset, order == 0};
    offset = item.end;
  }
  return {probe.end, false};
}

/// The item with exactly this key in the sorted block, if there is one.
[[nodiscard]] inline std::optional<SortedItem> find_sorted(const NodeView& leaf,
                                                           const SearchKey& key, LeafProbe probe) {
  if (probe.tied) [[unlikely]] resolve_tie(leaf, key, probe);
  std::uint32_t offset = probe.begin;
  while (offset < probe.end && offset != 0) {
    const SortedItem item = leaf.sorted_item(offset);
    if (same_key(item.key, key.view())) return item;
    offset = item.end;
  }
  return std::nullopt;
}

/// The newest log entry of the key that is visible at `read_version`, if there is one.
[[nodiscard]] inline std::optional<LogItem> find_in_log(const NodeView& leaf, const SearchKey& key,
                                                        std::uint64_t matches,
                                                        std::uint64_t read_version) {
  while (matches != 0) {
    const auto index = static_cast<std::uint32_t>(63 - std::countl_zero(matches));
    matches &= ~(std::uint64_t{1} << index);
    const LogItem item = leaf.log_item(index, read_version);
    if (item.version != wire::kLive && same_key(item.key, key.view())) return item;
  }
  return std::nullopt;
}

/// Ranks the key among the children of an interior node: the group to read.
/// Requires: the node's header and group heads are at hand.
struct GroupChoice {
  std::uint32_t first = 0;  // the child is in one of the groups [first, last]
  std::uint32_t last = 0;
};
[[nodiscard]] inline GroupChoice choose_group(const NodeView& node, const SearchKey& key,
                                              const SearchKit& kit) {
  const Rank rank = kit.rank16(node.bytes() + node.geometry().group_heads_begin, node.groups(),
                               head16(node, key));
  GroupChoice choice;
  choice.first = rank.below == 0 ? 0 : rank.below - 1;
  choice.last = rank.below_or_equal == 0 ? 0 : rank.below_or_equal - 1;
  return choice;
}

/// Index of the child that covers the key. Requires: the groups of the choice are at hand; where two
/// separators share the key's head, the separators too.
[[nodiscard]] std::uint32_t choose_child(const NodeView& node, const SearchKey& key,
                                         GroupChoice choice, const SearchKit& kit);

/// Index of the child with low < key <= high, for descending walks; an empty key is the end.
[[nodiscard]] std::uint32_t choose_child_descending(const NodeView& node, const SearchKey& key);

}  // namespace espalier::tree
