// SPDX-License-Identifier: Apache-2.0
// What a client is told before it reads a map or a table by READs alone, and how it renews its
// lease.
// The page docs/formats/one_sided.md draws it.
//
// The answer to one_sided_open, or one_sided_table, is a row of fields: each a FieldHeader, then so
// many bytes, then zeros up to a multiple of 8. Who reads it skips kinds that it does not know, so
// that later parts add theirs without another version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/map_header.hpp"

namespace espalier::wire {

enum class FieldKind : std::uint16_t {
  invalid = 0,
  region = 1,    // OfferedRegion: where the node's memory can be read
  map = 2,       // MapPlace: the map that was asked for
  lease = 3,     // LeaseGrant
  table = 4,     // TablePlace: the table that was asked for
  keyed = 5,     // KeyedPlace, and the prefix behind it: READs of the map that carry a key
  redirect = 6,  // RedirectPlace: where tables in switches may send them
  feed = 7,      // FeedPlace (wire/mapping_feed.hpp): where changes of the map's mappings are told
  borders = 8,   // ShardBorders, and both behind it: of a shard, which keys it has
};

/// `argument` of one_sided_open: READs that carry a key are wanted; answered with field `keyed`.
inline constexpr std::uint32_t kReadsByKey = 1;

/// `argument` of index_generation: nothing, for a redirect key of a new generation of tables; or
/// this, once no switch has tables of the generations before: their keys are void then.
inline constexpr std::uint32_t kEndsGenerations = 1;

struct FieldHeader {
  std::uint16_t kind;      // FieldKind
  std::uint16_t reserved;  // 0
  std::uint32_t bytes;     // of the field, this header and the zeros behind it left out
};
static_assert(sizeof(FieldHeader) == 8 && std::has_unique_object_representations_v<FieldHeader>);

/// The store's region, to be read by this session alone, until its key is revoked.
struct OfferedRegion {
  std::uint64_t base;  // the address of its first byte
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t reserved;
};
static_assert(sizeof(OfferedRegion) == 24 &&
              std::has_unique_object_representations_v<OfferedRegion>);

struct MapPlace {
  std::uint64_t header_offset;  // of the map's header in the region
  MapHeader header;             // as it was then
};
static_assert(sizeof(MapPlace) == 8 + sizeof(MapHeader) &&
              std::has_unique_object_representations_v<MapPlace>);

struct TablePlace {
  std::uint64_t header_offset;  // of the table's header in the region
  std::uint32_t table_id;
  std::uint32_t generation;  // of that header
};
static_assert(sizeof(TablePlace) == 16 && std::has_unique_object_representations_v<TablePlace>);

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

struct LeaseGrant {
  std::uint64_t lease;  // its name; never 0
  std::uint64_t epoch;  // at which walks begin
  std::uint64_t renew_every_ns;
  std::uint64_t believed_for_ns;
  std::uint64_t lost_after_ns;
};
static_assert(sizeof(LeaseGrant) == 40 && std::has_unique_object_representations_v<LeaseGrant>);

/// The payload of lease_renew; behind it may stand LIDs, 4 bytes each, of leaves of the request's
/// map that answers were from, one for 64 answers. The answer's `version` is the present epoch.
struct LeaseRenewal {
  std::uint64_t lease;
  std::uint64_t oldest;  // epoch of the walks in flight, or the one told last
};
inline constexpr std::uint32_t kSampledLeavesMax = 32;
static_assert(sizeof(LeaseRenewal) == 16 && std::has_unique_object_representations_v<LeaseRenewal>);

/// An answer of index_counts is a row of these, those of the most read leaves first.
struct LeafCount {
  std::uint32_t lid;
  std::uint32_t answers;  // that were counted, one of 64, and halved each half second
};
static_assert(sizeof(LeafCount) == 8 && std::has_unique_object_representations_v<LeafCount>);

}  // namespace espalier::wire
