// SPDX-License-Identifier: Apache-2.0
// All that a reader elsewhere knows of a hash map before it begins: who the map is, how it hashes,
// and where its partitions lie. Nothing of it changes while the map lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "espalier/error.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/key_hash.hpp"

namespace espalier::place {

struct HashTarget {
  /// Of a copy of the map's header, which came from `header_offset` of a region of `region_bytes`.
  /// Every field is checked; the bytes may come from anywhere.
  /// Errors: corrupt (detail: 1 no header of a hash map, 2 dropped or not live, 3 a shape that none
  /// has, 4 outside of the region, 5 its clock is), unsupported (versions are off).
  [[nodiscard]] static Result<HashTarget> read(const hash::HashHeader& header,
                                               std::uint64_t header_offset,
                                               std::uint64_t region_bytes);

  /// Whether the map with this header is still this one, and not dropped.
  [[nodiscard]] bool same_map(std::uint32_t map_id, std::uint32_t header_generation,
                              std::uint64_t superseded) const {
    return map_id == id && header_generation == generation && superseded == wire::kLive;
  }
  [[nodiscard]] hash::KeyHash hash(std::string_view key) const {
    return {hash::hash_key(key, seed), partition_bits};
  }
  [[nodiscard]] std::uint64_t partition_line(std::uint32_t partition) const {
    return header_offset + sizeof(hash::HashHeader) + std::uint64_t{partition} * hash::kLineBytes;
  }
  /// Whether the word of its read version is not in its header.
  [[nodiscard]] bool shares_clock() const {
    return clock_offset != header_offset + offsetof(hash::HashHeader, read_version);
  }
  /// Whether so many bytes from this offset lie in the region.
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= region_bytes && bytes <= region_bytes - offset;
  }

  std::uint64_t region_bytes = 0;
  std::uint64_t header_offset = 0;
  std::uint64_t clock_offset = 0;  // of the word of its read version
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
  std::uint32_t partition_bits = 0;
  hash::HashSeed seed;
};

}  // namespace espalier::place
