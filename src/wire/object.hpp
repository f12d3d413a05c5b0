// SPDX-License-Identifier: Apache-2.0
// What object_list answers of one object: the value of an item whose key is the object's name and
// whose version is its id. docs/formats/objects.md draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// Of an object's name, which has one byte at least.
inline constexpr std::uint32_t kObjectNameBytesMax = 255;

/// What its kind tells of it follows: of a map MapShape, of a table TableFacts and its schema, of a
/// sequencer SequencerFacts.
struct ObjectEntry {
  std::uint64_t entries;  // items of a map, rows of a table, numbers of an epoch
  std::uint64_t memory_bytes;
  std::uint8_t kind;  // ObjectKind
  std::uint8_t reserved[7];
};
static_assert(sizeof(ObjectEntry) == 24 && offsetof(ObjectEntry, kind) == 16);
static_assert(std::has_unique_object_representations_v<ObjectEntry>);

}  // namespace espalier::wire
