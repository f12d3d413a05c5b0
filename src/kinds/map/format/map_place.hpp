// SPDX-License-Identifier: Apache-2.0
// Where a map lies, for a client that is to read it by READs alone, and what lets these carry keys:
// the fields of an answer to one_sided_open and index_open that only maps have.
// The page docs/formats/one_sided.md draws them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kinds/map/format/map_header.hpp"

namespace espalier::wire {

/// `argument` of one_sided_open: READs that carry a key are wanted; answered with field `keyed`.
inline constexpr std::uint32_t kReadsByKey = 1;

/// `argument` of index_generation: nothing, for a redirect key of a new generation of tables; or
/// this, once no switch has tables of the generations before: their keys are void then.
inline constexpr std::uint32_t kEndsGenerations = 1;

struct MapPlace {
  std::uint64_t header_offset;  // of the map's header in the region
  MapHeader header;             // as it was then
};
static_assert(sizeof(MapPlace) == 8 + sizeof(MapHeader) &&
              std::has_unique_object_representations_v<MapPlace>);

/// A READ by this key has a number for its address: 8 bytes of a key, behind what all keys of the
/// map began with, so many bytes, when this was offered. It brings the beginning of a node.
struct KeyedPlace {
  std::uint32_t key;
  std::uint32_t prefix_bytes;  // and so many bytes follow
};
static_assert(sizeof(KeyedPlace) == 8 && std::has_unique_object_representations_v<KeyedPlace>);

/// A READ by this key brings the beginning of the node that begins at its address, counted from
/// `base` as the region's offsets are. It is for tables in switches.
struct RedirectPlace {
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(RedirectPlace) == 24 &&
              std::has_unique_object_representations_v<RedirectPlace>);

/// Of a map that is a shard: it has the keys from the first border up to the second.
struct ShardBorders {
  std::uint32_t low_bytes;   // so many follow; none: from the lowest key on
  std::uint32_t high_bytes;  // and then so many; none: it has no end
};
static_assert(sizeof(ShardBorders) == 8 && std::has_unique_object_representations_v<ShardBorders>);

/// An answer of index_counts is a row of these, those of the most read leaves first.
struct LeafCount {
  std::uint32_t lid;
  std::uint32_t answers;  // that were counted, one of 64, and halved each half second
};
static_assert(sizeof(LeafCount) == 8 && std::has_unique_object_representations_v<LeafCount>);

}  // namespace espalier::wire
