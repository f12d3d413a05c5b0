// SPDX-License-Identifier: Apache-2.0
// The bytes of a map that walkers share besides its nodes: its versions, and its page table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kinds/map/format/node.hpp"

namespace espalier::wire {

inline constexpr std::uint64_t kMapMagic = 0x50414D2052494C45;  // "ELIR MAP", low byte first
inline constexpr std::uint32_t kMapFormat = 3;

/// One per map, in a buffer of its own. The released version has a cache line to itself: it is what
/// every read begins with and every write ends with.
struct MapHeader {
  std::uint32_t map_id;
  std::uint32_t generation;
  std::uint64_t created;     // kNoNode
  std::uint64_t superseded;  // kLive; 0 once the map is dropped
  std::uint64_t magic;
  std::uint32_t format;
  std::uint32_t node_bytes;
  std::uint32_t log_bytes;
  std::uint32_t versions;          // 1: multi-version; 0: off
  std::uint64_t directory_offset;  // of the page table's directory, from the region's base
  Lid root;
  std::uint32_t reserved;

  std::uint64_t read_version;  // the newest released version; of a group's map 0
  std::uint64_t clock_offset;  // of the read version that counts: this one, or its group's
  std::uint64_t read_reserved[6];
  std::uint64_t write_version;  // the newest version that a writer took
  std::uint64_t write_reserved[7];
};
static_assert(sizeof(MapHeader) == 192 && std::has_unique_object_representations_v<MapHeader>);
static_assert(offsetof(MapHeader, superseded) == offsetof(BufferHeader, superseded));
static_assert(offsetof(MapHeader, magic) == 24);
static_assert(offsetof(MapHeader, directory_offset) == 48);
static_assert(offsetof(MapHeader, root) == 56);
static_assert(offsetof(MapHeader, read_version) == 64);
static_assert(offsetof(MapHeader, clock_offset) == 72);
static_assert(offsetof(MapHeader, write_version) == 128);

/// The page table maps a LID to a Ref in two steps: the directory names table pages by their
/// offset, a table page holds references. Both are buffers; their first three words are the
/// BufferHeader, so that directory entries 0 to 2 and LIDs with (lid % 4096) < 3 do not exist.
inline constexpr std::uint32_t kTablePageEntries = 4096;
inline constexpr std::uint32_t kTablePageBytes = kTablePageEntries * 8;
inline constexpr std::uint32_t kTablePageShift = 12;
inline constexpr std::uint32_t kDirectoryEntries = 8192;
inline constexpr std::uint32_t kDirectoryBytes = kDirectoryEntries * 8;
inline constexpr std::uint32_t kHeaderWords = sizeof(BufferHeader) / 8;
static_assert(1u << kTablePageShift == kTablePageEntries);

}  // namespace espalier::wire
