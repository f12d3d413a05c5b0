// SPDX-License-Identifier: Apache-2.0
// Where the parts of a node lie, computed once per map from its options.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "espalier/types.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::tree {

/// Offsets and limits of a map's nodes, in bytes.
struct Geometry {
  std::uint32_t node_bytes = 0;
  std::uint32_t log_bytes = 0;       // a leaf's log block has so many, where the node has room,
  std::uint32_t log_bytes_most = 0;  // and up to so many if its items are long: leaf_log_bytes()
  std::uint32_t log_slots = 0;       // entries that the log block may have
  std::uint32_t chunk_shift = 0;  // the sorted block is cut into chunks of 1 << chunk_shift bytes
  std::uint32_t unit_shift = 0;   // sorted items begin at multiples of 1 << unit_shift
  std::uint32_t unit_mask = 0;    // (1 << unit_shift) - 1
  std::uint32_t chunks_max = 0;
  std::uint32_t slots_begin = sizeof(wire::NodeHeader);
  std::uint32_t key_prefixes_begin = 0;
  std::uint32_t starts_begin = 0;
  std::uint32_t places_begin = 0;  // of log entries
  std::uint32_t sorted_begin = 0;
  std::uint32_t groups_max = 0;  // interior: groups of 16 children
  std::uint32_t group_key_prefixes_begin = sizeof(wire::NodeHeader);
  std::uint32_t prefix_begin = 0;  // interior: of room, up to the groups, for a prefix
  std::uint32_t groups_begin = 0;
  std::uint32_t key_bytes_max = 0;
  std::uint32_t inline_value_bytes_max = 0;

  /// Bytes of an interior node that what its separators begin with may take; a multiple of 8.
  [[nodiscard]] constexpr std::uint32_t prefix_room() const { return groups_begin - prefix_begin; }

  static bool valid(const MapOptions& options) {
    return std::has_single_bit(options.node_bytes) && options.node_bytes >= wire::kNodeBytesMin &&
           options.node_bytes <= wire::kNodeBytesMax && options.log_bytes % 64 == 0 &&
           options.log_bytes <= wire::kLogBytesMax;
  }

  static Geometry of(const MapOptions& map) { return of(map.node_bytes, map.log_bytes); }
  static constexpr Geometry of(std::uint32_t node_bytes, std::uint32_t log_bytes) {
    Geometry g;
    g.node_bytes = node_bytes;
    g.log_bytes = std::min(log_bytes, g.node_bytes / 4);
    g.log_bytes_most = g.log_bytes == 0 ? 0 : std::min(wire::kLogBytesMax, g.node_bytes / 4);
    g.log_slots = std::min(g.log_bytes / 32, wire::kLogSlotsMax);
    const auto node_shift = static_cast<std::uint32_t>(std::countr_zero(g.node_bytes));
    g.chunk_shift = std::max(6u, node_shift - 6);
    g.unit_shift = g.chunk_shift - std::min(7u, g.chunk_shift);
    g.unit_mask = (1u << g.unit_shift) - 1;
    g.key_prefixes_begin = g.slots_begin + 2 * g.log_slots;
    // Every chunk costs its bytes, a head of 2 and a start of 1; the last one may be cut short.
    const std::uint32_t chunk_bytes = 1u << g.chunk_shift;
    g.chunks_max = (g.node_bytes - g.key_prefixes_begin) / (chunk_bytes + 3);
    for (;; ++g.chunks_max) {
      g.starts_begin = g.key_prefixes_begin + 2 * g.chunks_max;
      g.places_begin = (g.starts_begin + g.chunks_max + 1) & ~1u;
      g.sorted_begin = (g.places_begin + 2 * g.log_slots + 63) & ~63u;
      if (g.sorted_begin + g.chunks_max * chunk_bytes >= g.node_bytes) break;
    }
    g.groups_max = std::min(60u, (g.node_bytes - g.group_key_prefixes_begin) / 160 + 1);
    const std::uint32_t group_heads_end = g.group_key_prefixes_begin + 2 * g.groups_max;
    g.groups_begin = (group_heads_end + 63) & ~63u;
    g.prefix_begin = (group_heads_end + 7) & ~7u;
    const std::uint32_t sixteenth = g.node_bytes / 16;
    g.key_bytes_max = std::min(sixteenth, wire::kKeyBytesMax);
    g.inline_value_bytes_max = std::min(sixteenth, wire::kInlineValueBytesMax);
    return g;
  }

  /// Entries as long as a leaf's items that its log is made for: a log that holds three of them is
  /// merged with each fourth write, and a merge copies the leaf.
  static constexpr std::uint32_t kUsualEntries = 10;
  static constexpr std::uint32_t kEntryHead = sizeof(wire::LogEntry);

  /// Bytes of log of a leaf whose sorted block has so many bytes and items, where it has room. The
  /// last leaf has room for all entries that it may have: ascending keys go there, one by one, and
  /// hardly a scan begins there.
  [[nodiscard]] constexpr std::uint32_t leaf_log_bytes(std::uint32_t sorted_bytes,
                                                       std::uint32_t items, bool last) const {
    if (items == 0) return log_bytes;
    // An item's lengths take two bytes, mostly, and are part of an entry's own 16.
    const std::uint32_t entry = (sorted_bytes / items + kEntryHead - 2 + 7) & ~7u;
    const std::uint32_t wanted = (last ? log_slots : std::min(kUsualEntries, log_slots)) * entry;
    return std::min(std::max(log_bytes, wanted), log_bytes_most);
  }
};

static_assert(Geometry::of(8192, 512).sorted_begin == 384);
static_assert(Geometry::of(8192, 512).groups_begin == 256);
static_assert(Geometry::of(8192, 512).prefix_room() == 24);
static_assert(Geometry::of(8192, 512).chunk_shift == 7);
static_assert(Geometry::of(8192, 512).chunks_max <= 64);
static_assert(Geometry::of(4096, 0).chunks_max <= 64);
static_assert(Geometry::of(65536, 0).chunks_max <= 64);

}  // namespace espalier::tree
