// SPDX-License-Identifier: Apache-2.0
// Where a map lies, for a client that reads it by one-sided READs, and what READs by key need: the
// fields of answers to one_sided_open and index_open that only maps have. Layout:
// docs/formats/one_sided.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kinds/map/format/map_header.hpp"

namespace espalier::wire {

/// `argument` of one_sided_open: requests READs by key; answered with field `keyed`.
inline constexpr std::uint32_t kReadsByKey = 1;

/// `argument` of index_generation: 0 asks for a redirect key of a new generation of tables. This
/// value, valid once no switch has tables of earlier generations, revokes their keys.
inline constexpr std::uint32_t kEndsGenerations = 1;

struct MapPlace {
  std::uint64_t header_offset;  // of the map's header in the region
  MapHeader header;             // as it was when the call was answered
};
static_assert(sizeof(MapPlace) == 8 + sizeof(MapHeader) &&
              std::has_unique_object_representations_v<MapPlace>);

/// READs with this region key carry a number in place of an address: the 8 bytes of a map key
/// behind the prefix that all keys of the map shared when this was offered. Such a READ returns the
/// beginning of a node.
struct KeyedPlace {
  std::uint32_t key;
  std::uint32_t prefix_bytes;  // length of the shared prefix, which follows
};
static_assert(sizeof(KeyedPlace) == 8 && std::has_unique_object_representations_v<KeyedPlace>);

/// READs with this region key, issued by tables in switches, return the beginning of the node at
/// their address, counted from `base` as the region's offsets are.
struct RedirectPlace {
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(RedirectPlace) == 24 &&
              std::has_unique_object_representations_v<RedirectPlace>);

/// The key range of a shard: from its low border up to its high border.
struct ShardBorders {
  std::uint32_t low_bytes;   // length of the low border, which follows; 0: no lower bound
  std::uint32_t high_bytes;  // length of the high border, which follows; 0: no upper bound
};
static_assert(sizeof(ShardBorders) == 8 && std::has_unique_object_representations_v<ShardBorders>);

/// An answer of index_counts is an array of these, the most read leaves first.
struct LeafCount {
  std::uint32_t lid;
  std::uint32_t answers;  // sampled, one in 64; halved every half second
};
static_assert(sizeof(LeafCount) == 8 && std::has_unique_object_representations_v<LeafCount>);

}  // namespace espalier::wire
