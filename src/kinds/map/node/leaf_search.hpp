// SPDX-License-Identifier: Apache-2.0
// Searches a leaf or an interior node for a key: the chunk by key prefixes, the item by comparison,
// the log by tags.
//
// Split in two so that a walk can wait in between: `probe_leaf` needs only the leaf's header,
// slots, chunk key prefixes and starts (all in its first 512 bytes) and reports which bytes to read
// next.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "base/prefetch.hpp"
#include "kinds/map/node/node_head.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::tree {

/// What the head of a leaf implies for a key.
struct LeafProbe {
  Rank rank;                // of the key's prefix among those of the chunks
  std::uint32_t chunk = 0;  // the chunk where the key is, unless `tied`
  std::uint32_t begin = 0;  // the chunk's items lie in [begin, end); empty if the key is below all
  std::uint32_t end = 0;
  bool tied = false;              // several chunks have this prefix: keys must decide
  std::uint64_t log_matches = 0;  // log slots whose tag matches the key
};

/// The position of a key in the sorted block.
struct Position {
  std::uint32_t offset = 0;  // of the first item not below the key; sorted_end if there is none
  bool exact = false;        // that item has the key
};

/// The newest of the log slots that may carry a key. Requires: there are some.
[[nodiscard]] inline std::uint32_t newest_match(std::uint64_t log_matches) {
  return static_cast<std::uint32_t>(63 - std::countl_zero(log_matches));
}

/// Prefetches what a probe reads of a leaf. `all`: for readers of more than one item, also the line
/// that tells where the leaf ends, and the places of log entries.
inline void want_leaf_head(const std::byte* leaf, const Geometry& g, bool all) {
  __builtin_prefetch(leaf);
  if (all) __builtin_prefetch(leaf + base::kLineBytes);
  base::prefetch(leaf + g.slots_begin, leaf + (all ? g.sorted_begin : g.places_begin));
}

/// Prefetches the fences at the end of a leaf. `known`: the header, with their offset, is at hand.
inline void want_fences(const NodeView& leaf, bool known) {
  const std::byte* const end = leaf.bytes() + leaf.geometry().node_bytes;
  if (known) {
    const std::uint32_t begin = std::min(leaf.fence_begin(), leaf.geometry().node_bytes);
    return base::prefetch(leaf.bytes() + begin, end);
  }
  base::prefetch_line(leaf.bytes() + base::kLineBytes);
  base::prefetch(end - 2 * base::kLineBytes, end);
}

/// Prefetches the log of a leaf whose head is at hand.
inline void want_log(const NodeView& leaf, const NodeHead& head) {
  const std::byte* log = leaf.bytes() + leaf.log_begin();
  base::prefetch(log, log + head.lock.units() * wire::kLogUnitBytes);
}
/// Prefetches the log entries placed before sorted items in [begin, until); if `until` is the end
/// of the sorted block, also those behind it.
inline void want_log_between(const NodeView& leaf, const NodeHead& head, std::uint32_t begin,
                             std::uint64_t until) {
  const std::uint32_t end =
      until >= head.sorted_end() ? head.sorted_end() + 1 : static_cast<std::uint32_t>(until);
  for (std::uint32_t i = 0; i < leaf.log_entries(head.lock); ++i) {
    if (leaf.log_place(i) - begin < end - begin) {
      base::prefetch_line(leaf.bytes() + leaf.log_offset(i));
    }
  }
}
/// Prefetches, for writing, the end of the log.
inline void want_log_end(const NodeView& leaf, const NodeHead& head) {
  const std::byte* end = leaf.bytes() + leaf.log_begin() + head.lock.units() * wire::kLogUnitBytes;
  base::prefetch_to_write(end);
  base::prefetch_to_write(end + base::kLineBytes);
}
/// Prefetches the newest log entry whose tag matches.
inline void want_log_match(const NodeView& leaf, const LeafProbe& probe) {
  if (probe.log_matches == 0) return;
  base::prefetch_line(leaf.bytes() + leaf.log_offset(newest_match(probe.log_matches)));
}

/// `Kit`: SearchKit, or one of search_kits.hpp.
template <class Kit>
inline void probe_leaf(const NodeView& leaf, const NodeHead& head, const SearchKey& key,
                       const Kit& kit, LeafProbe& probe) {
  const Geometry& g = leaf.geometry();
  const std::uint32_t chunks = head.chunks() < g.chunks_max ? head.chunks() : g.chunks_max;
  probe.rank = kit.rank16(leaf.bytes() + g.key_prefixes_begin, chunks,
                          static_cast<std::uint16_t>(head.scaled(key) >> 48));
  const std::uint32_t entries = leaf.log_entries(head.lock);
  probe.log_matches =
      entries == 0 ? 0 : kit.match_tags(leaf.bytes() + g.slots_begin, entries, key.tag());
  probe.tied = probe.rank.below_or_equal != probe.rank.below;
  // A key at the begin of a chunk ties with it: usually its chunk is the last of the tied ones.
  const std::uint32_t at = probe.rank.below_or_equal;
  if (at != 0) {
    const std::uint32_t end = leaf.clamp_sorted_end(head.sorted_end());
    probe.chunk = at - 1;
    probe.begin = leaf.chunk_start(probe.chunk, end);
    probe.end = leaf.chunk_end(probe.chunk, chunks, end);
  } else {
    probe.chunk = 0;
    probe.begin = probe.end = g.sorted_begin;
  }
}
[[nodiscard]] inline LeafProbe probe_leaf(const NodeView& leaf, const SearchKey& key,
                                          const SearchKit& kit) {
  LeafProbe probe;
  probe_leaf(leaf, NodeHead::read(leaf.bytes()), key, kit, probe);
  return probe;
}

/// Decides between chunks with the same key prefix by comparing their first keys.
void resolve_tie(const NodeView& leaf, const SearchKey& key, LeafProbe& probe);

/// Picks the last tied chunk if it does not begin above the key.
inline void decide_tie(const NodeView& leaf, const SearchKey& key, LeafProbe& probe) {
  if (probe.begin != 0 && compare_keys(leaf.sorted_item(probe.begin).key, key.view()) <= 0)
      [[likely]] {
    probe.tied = false;
  } else {
    resolve_tie(leaf, key, probe);
  }
}

/// A chunk whose items all have the lengths of its first one, the usual case, with keys as long as
/// the sought key. Then no address depends on data just read, and no branch on the item's index.
struct AlikeItems {
  std::uint32_t step = 0;         // from one item to the next
  std::uint32_t value_bytes = 0;  // of each
  std::uint16_t lengths = 0;      // the first bytes of each item

  /// Reads the lengths of the first item of the probe's chunk; false: not such a chunk.
  [[nodiscard]] bool read(const NodeView& leaf, const SearchKey& key, const LeafProbe& probe) {
    lengths = base::load_plain<std::uint16_t>(leaf.bytes() + probe.begin);
    const std::uint32_t key_bytes = lengths & 0xFFu;
    value_bytes = lengths >> 8;
    const std::uint32_t mask = leaf.geometry().unit_mask;
    step = (2 + key_bytes + value_bytes + mask) & ~mask;
    return key_bytes == key.bytes() && key_bytes >= 8 && (lengths & 0x8080) == 0;
  }
};

/// lower_bound() in such a chunk; false if its items turn out to differ.
[[nodiscard]] inline bool lower_bound_among_alike(const NodeView& leaf, const SearchKey& key,
                                                  const LeafProbe& probe, Position& position) {
  AlikeItems alike;
  if (probe.begin == 0 || probe.begin >= probe.end || key.bytes() > 16) return false;
  if (!alike.read(leaf, key, probe)) return false;
  const std::uint64_t first = key.prefix();
  const std::uint64_t last = key.tail();
  std::uint32_t below = 0;
  std::uint32_t unlike = 0;
  bool exact = false;
  std::uint32_t at = probe.begin;
  for (; at + alike.step <= probe.end; at += alike.step) {
    const auto* text = reinterpret_cast<const char*>(leaf.bytes() + at + 2);
    unlike |= base::load_plain<std::uint16_t>(leaf.bytes() + at) ^ alike.lengths;
    const std::uint64_t x = big_endian_at(text);
    const std::uint64_t y = big_endian_at(text + key.bytes() - 8);
    below += (x < first) | ((x == first) & (y < last)) ? alike.step : 0;
    exact |= (x == first) & (y == last);
  }
  position = {probe.begin + below, exact};
  return unlike == 0 && at == probe.end;
}

/// The first item >= key. Requires: the probe's chunk (if tied, all tied chunks) is at hand.
[[nodiscard]] inline Position lower_bound(const NodeView& leaf, const SearchKey& key,
                                          LeafProbe probe) {
  if (probe.tied) decide_tie(leaf, key, probe);
  Position position;
  if (lower_bound_among_alike(leaf, key, probe, position)) [[likely]]
    return position;
  const std::uint32_t prefix = leaf.prefix_bytes();
  std::uint32_t offset = probe.begin;
  const std::uint32_t sorted_end = leaf.sorted_end();
  while (offset < probe.end && offset != 0) {
    const SortedItem item = leaf.sorted_item(offset, sorted_end);
    const std::size_t equal = item.key.size() < prefix ? 0 : prefix;
    const int order = compare_keys(item.key, key.view(), equal);
    if (order >= 0) return {offset, order == 0};
    offset = item.end;
  }
  return {probe.end, false};
}

/// Finds the item with exactly this key in a chunk of alike items; false if it is no such chunk.
/// `found.end` is 0 if there is no such item.
[[nodiscard]] inline bool find_among_alike(const NodeView& leaf, const SearchKey& key,
                                           const LeafProbe& probe, SortedItem& found) {
  AlikeItems alike;
  if (!alike.read(leaf, key, probe)) return false;
  const std::uint32_t key_bytes = key.bytes();
  std::uint32_t match = 0;
  std::uint32_t unlike = 0;
  std::uint32_t at = probe.begin;
  for (; at + alike.step <= probe.end; at += alike.step) {
    const std::byte* item = leaf.bytes() + at;
    unlike |= base::load_plain<std::uint16_t>(item) ^ alike.lengths;
    match = key.ends_match(reinterpret_cast<const char*>(item + 2), key_bytes) ? at : match;
  }
  if (unlike != 0 || at != probe.end) return false;
  const char* const text = reinterpret_cast<const char*>(leaf.bytes() + match + 2);
  found.end = 0;
  if (match == 0) return true;
  // Both ends are equal; in longer keys the middle may differ.
  if (key_bytes > 16 && !key.same_as(text, key_bytes)) return false;
  found.key = {text, key_bytes};
  found.value = text + key_bytes;
  found.value_bytes = alike.value_bytes;
  found.out_of_line = false;
  found.end = match + alike.step;
  return true;
}

/// Finds the item of the probe's chunk with exactly this key.
[[nodiscard]] inline bool find_in_chunk(const NodeView& leaf, const SearchKey& key,
                                        const LeafProbe& probe, SortedItem& found) {
  std::uint32_t offset = probe.begin;
  if (offset >= probe.end || offset == 0) return false;
  if (find_among_alike(leaf, key, probe, found)) [[likely]]
    return found.end != 0;
  const std::uint32_t end = leaf.sorted_end();
  while (offset < probe.end && offset != 0) {
    const SortedItem item = leaf.sorted_item(offset, end);
    if (key.same_as(item.key.data(), static_cast<std::uint32_t>(item.key.size()))) {
      found = item;
      return true;
    }
    offset = item.end;
  }
  return false;
}

/// Finds the item with exactly this key in the sorted block.
[[nodiscard]] inline bool find_sorted(const NodeView& leaf, const SearchKey& key,
                                      const LeafProbe& probe, SortedItem& found) {
  // A key at the begin of a chunk ties with it: its chunk is the last of the tied ones.
  if (find_in_chunk(leaf, key, probe, found)) return true;
  if (!probe.tied) [[likely]]
    return false;
  LeafProbe resolved = probe;
  resolve_tie(leaf, key, resolved);
  return find_in_chunk(leaf, key, resolved, found);
}

/// The newest log entry of the key that is visible at `read_version`, if there is one.
[[nodiscard]] inline std::optional<LogItem> find_in_log(const NodeView& leaf, const SearchKey& key,
                                                        std::uint64_t matches,
                                                        std::uint64_t read_version) {
  while (matches != 0) {
    const std::uint32_t index = newest_match(matches);
    matches &= ~(std::uint64_t{1} << index);
    const LogItem item = leaf.log_item(index, read_version);
    if (item.version != wire::kLive && same_key(item.key, key.view())) return item;
  }
  return std::nullopt;
}

/// Compares a key within the fences of an interior node with the prefix that all its separators
/// share: < 0, below all separators; > 0, above all; 0, the key has the prefix.
/// Requires: the node's header and the bytes before its groups are at hand.
[[nodiscard]] inline int compare_with_prefix(const NodeView& node, const NodeHead& head,
                                             const SearchKey& key) {
  const std::uint32_t prefix = head.prefix_bytes();
  const std::uint32_t shared = head.fences_share();
  if (prefix <= shared) return 0;  // both fences have the prefix, and the key lies between them
  const Geometry& g = node.geometry();
  const std::uint32_t kept = std::min(prefix - shared, g.prefix_room());
  for (std::uint32_t at = 0; at < kept; at += 8) {
    if (at != 0 && planted(Bug::prefix_compared_short)) break;
    const std::uint32_t unused_bits = kept - at >= 8 ? 0 : 64 - 8 * (kept - at);
    const std::uint64_t word = key.head_after(shared + at) >> unused_bits << unused_bits;
    const std::uint64_t of_node =
        __builtin_bswap64(base::load_plain<std::uint64_t>(node.bytes() + g.prefix_begin + at));
    if (word != of_node) return word < of_node ? -1 : 1;
  }
  // A shorter key compared as if padded with zeros.
  return key.bytes() < prefix ? -1 : 0;
}

/// Where a key is in an interior node: the groups that may have its child, usually one.
struct GroupChoice {
  std::uint64_t scaled = 0;  // the normalised key
  std::uint32_t equal = 0;   // lower bound on the bytes that it shares with all separators
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

/// Normalises the key for an interior node; chooses no group yet.
/// Requires: as compare_with_prefix().
[[nodiscard]] inline GroupChoice scale_among_children(const NodeView& node, const NodeHead& head,
                                                      const SearchKey& key) {
  GroupChoice choice;
  const int order = compare_with_prefix(node, head, key);
  if (order == 0) [[likely]] {
    choice.scaled = head.scaled(key);
    choice.equal = head.prefix_bytes();
  } else {
    choice.scaled = order < 0 ? 0 : KeyPrefixMap::kMost;
  }
  return choice;
}

/// Chooses the groups. Requires: all bytes before the node's groups are at hand.
template <class Kit>
[[nodiscard]] inline GroupChoice choose_group(const NodeView& node, const NodeHead& head,
                                              const SearchKey& key, const Kit& kit) {
  GroupChoice choice = scale_among_children(node, head, key);
  const std::uint32_t most = node.geometry().groups_max;
  const Rank rank = kit.rank16(node.bytes() + node.geometry().group_key_prefixes_begin,
                               head.chunks() < most ? head.chunks() : most,
                               static_cast<std::uint16_t>(choice.scaled >> 48));
  choice.first = rank.below - (rank.below != 0 ? 1 : 0);
  choice.last = rank.below_or_equal - (rank.below_or_equal != 0 ? 1 : 0);
  return choice;
}

/// The children that the key's prefix admits, counted from 1: the key's child is in [below,
/// at_most]. Usually both are equal.
struct ChildRange {
  std::uint32_t below = 0;
  std::uint32_t at_most = 0;
};

/// Decides by full separators among the range's children, whose key prefixes are equal.
/// `separator(i)`: low separator of child i; `equal`: bytes that they and the key share.
template <class Separator>
[[nodiscard]] inline std::uint32_t choose_among_equal(std::uint32_t children, const SearchKey& key,
                                                      std::uint32_t equal, const ChildRange& range,
                                                      const Separator& separator) {
  // Unused prefixes are all ones, so a key whose prefix is all ones counts them too.
  std::uint32_t low = range.below;
  std::uint32_t high = std::min(range.at_most, children);
  while (low < high) {
    const std::uint32_t middle = (low + high) / 2;
    if (compare_keys(separator(middle), key.view(), equal) <= 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : low - 1;
}
[[nodiscard]] std::uint32_t choose_among_equal(const NodeView& node, const SearchKey& key,
                                               std::uint32_t equal, const ChildRange& range);

/// `first_group`, `last_group`: the bytes of the choice's groups.
template <class Kit>
[[nodiscard]] inline ChildRange child_range(const std::byte* first_group,
                                            const std::byte* last_group, const GroupChoice& choice,
                                            const Kit& kit) {
  const auto head = static_cast<std::uint32_t>(choice.scaled >> 32);
  const std::uint32_t first = choice.first * wire::kGroupChildren;
  const Rank rank = kit.rank32(first_group, head);
  // Child 0 begins at or below every key that the node covers.
  ChildRange range;
  range.below = first + rank.below + (first + rank.below == 0 ? 1 : 0);
  range.at_most = first + rank.below_or_equal;
  if (choice.last != choice.first) [[unlikely]] {
    // Group prefixes are shorter: those of children may still differ.
    const std::uint32_t last = choice.last * wire::kGroupChildren;
    const Rank rank_of_last = kit.rank32(last_group, head);
    if (rank_of_last.below != 0) range.below = last + rank_of_last.below;
    const bool in_first = rank_of_last.below_or_equal == 0 && choice.last == choice.first + 1;
    if (!in_first) range.at_most = last + rank_of_last.below_or_equal;
  }
  return range;
}
/// Requires: the groups of the choice are at hand.
template <class Kit>
[[nodiscard]] inline ChildRange child_range(const NodeView& node, const GroupChoice& choice,
                                            const Kit& kit) {
  return child_range(node.bytes() + node.group_offset(choice.first),
                     node.bytes() + node.group_offset(choice.last), choice, kit);
}

/// Whether full separators must decide which child it is.
template <class Kit>
[[nodiscard]] inline bool ties_among_children(const NodeView& node, const GroupChoice& choice,
                                              const Kit& kit) {
  const ChildRange range = child_range(node, choice, kit);
  return range.below != range.at_most;
}

/// Index of the child that covers the key. Requires: the groups of the choice are at hand, and the
/// separators if several share the key's prefix.
template <class Kit>
[[nodiscard]] inline std::uint32_t choose_child(const NodeView& node, const SearchKey& key,
                                                const GroupChoice& choice, const Kit& kit) {
  const ChildRange range = child_range(node, choice, kit);
  if (range.below != range.at_most) [[unlikely]]
    return choose_among_equal(node, key, choice.equal, range);
  return range.below - 1;
}
[[nodiscard]] inline std::uint32_t choose_child(const NodeView& node, const SearchKey& key,
                                                const SearchKit& kit) {
  return choose_child(node, key, choose_group(node, NodeHead::read(node.bytes()), key, kit), kit);
}

/// As choose_among_equal() for descending walks: the separators below the key decide.
[[nodiscard]] std::uint32_t choose_below_equal(const NodeView& node, const SearchKey& key,
                                               std::uint32_t equal, const ChildRange& range);

/// Index of the child with low < key <= high, for descending walks; an empty key stands for the
/// end.
/// Requires: the same as choose_child.
template <class Kit>
[[nodiscard]] inline std::uint32_t choose_child_descending(const NodeView& node,
                                                           const SearchKey& key,
                                                           const GroupChoice& choice,
                                                           const Kit& kit) {
  const std::uint32_t children = node.children();
  if (key.bytes() == 0) return children == 0 ? 0 : children - 1;
  const ChildRange range = child_range(node, choice, kit);
  if (range.below != range.at_most) [[unlikely]]
    return choose_below_equal(node, key, choice.equal, range);
  return range.below - 1;
}
[[nodiscard]] inline std::uint32_t choose_child_descending(const NodeView& node,
                                                           const SearchKey& key,
                                                           const SearchKit& kit) {
  const GroupChoice choice = choose_group(node, NodeHead::read(node.bytes()), key, kit);
  return choose_child_descending(node, key, choice, kit);
}

}  // namespace espalier::tree
