// SPDX-License-Identifier: Apache-2.0
// What a client receives before it reads an object of any kind by one-sided READs, and how it
// renews its lease. The page docs/formats/one_sided.md draws it.
//
// The answer to one_sided_open, one_sided_table or one_sided_hash is a list of fields: each a
// FieldHeader, then so many bytes, then zeros up to a multiple of 8. A reader skips unknown kinds,
// so that later versions add fields without another protocol version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// What a field is. Region and lease are drawn here, the others by the format of their kind.
enum class FieldKind : std::uint16_t {
  invalid = 0,
  region = 1,    // OfferedRegion: where the node's memory can be read
  map = 2,       // MapPlace: the map that was asked for
  lease = 3,     // LeaseGrant
  table = 4,     // TablePlace: the table that was asked for
  keyed = 5,     // KeyedPlace, and the prefix behind it: READs of the map that carry a key
  redirect = 6,  // RedirectPlace: where tables in switches may send them
  feed = 7,      // FeedPlace: where changes of the map's mappings are published
  borders = 8,   // ShardBorders, and both behind it: of a shard, which keys it has
  hash = 9,      // HashPlace: the hash map that was asked for
};

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
  std::uint64_t oldest;  // epoch of walks in flight, or the one last granted; or kLeaseGivenBack
};
/// In place of an epoch: nothing is read under the lease any more, and it ends.
inline constexpr std::uint64_t kLeaseGivenBack = ~std::uint64_t{0};
inline constexpr std::uint32_t kSampledLeavesMax = 32;
static_assert(sizeof(LeaseRenewal) == 16 && std::has_unique_object_representations_v<LeaseRenewal>);

}  // namespace espalier::wire
