// SPDX-License-Identifier: Apache-2.0
// The clock that the maps of one group share, in a buffer of its own that is no map's. Their
// headers name where its read version lies; docs/formats/map.md draws both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wire/ref.hpp"

namespace espalier::wire {

/// The two words have a line each, and lie as far from each other as those of a map's own header:
/// who knows where the first is knows where the second is.
struct GroupClock {
  std::uint32_t map_id;  // 0: no map's
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive
  std::uint64_t reserved[5];
  std::uint64_t read_version;  // the newest released version
  std::uint64_t read_reserved[7];
  std::uint64_t write_version;  // the newest version that a writer took
  std::uint64_t write_reserved[7];
};
static_assert(sizeof(GroupClock) == 192 && std::has_unique_object_representations_v<GroupClock>);
static_assert(offsetof(GroupClock, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(GroupClock, read_version) == 64);
static_assert(offsetof(GroupClock, write_version) == 128);

/// From the word of the read version to that of the write version.
inline constexpr std::uint64_t kWriteVersionBehind =
    offsetof(GroupClock, write_version) - offsetof(GroupClock, read_version);

/// Where a header may say that the read version lies: at a line's begin, within the region.
[[nodiscard]] constexpr bool is_clock_place(std::uint64_t offset, std::uint64_t region_bytes) {
  constexpr std::uint64_t kBytes = kWriteVersionBehind + sizeof(std::uint64_t);
  return offset % kWriteVersionBehind == 0 && offset <= region_bytes &&
         kBytes <= region_bytes - offset;
}

}  // namespace espalier::wire
