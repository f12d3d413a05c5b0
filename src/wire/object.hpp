// SPDX-License-Identifier: Apache-2.0
// How object_list describes one object: the value of an item whose key is the object's name and
// whose version is its id. docs/formats/objects.md draws it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "espalier/kind.hpp"

namespace espalier::wire {

/// The durability of one object as a number: in requests that make one, in records, in lists.
/// 0: none of its own, so its store's; 1 none; 2 async; 3 sync.
[[nodiscard]] constexpr std::uint32_t number_of(std::optional<Durability> durability) {
  return durability ? static_cast<std::uint32_t>(*durability) + 1 : 0;
}
inline constexpr std::uint32_t kDurabilityMax = 3;
/// Unknown numbers are nothing, too: what comes from elsewhere is checked before.
[[nodiscard]] constexpr std::optional<Durability> durability_of(std::uint64_t number) {
  if (number == 0 || number > kDurabilityMax) return std::nullopt;
  return static_cast<Durability>(number - 1);
}

/// Of an object's name, which has one byte at least.
inline constexpr std::uint32_t kObjectNameBytesMax = 255;

/// Whether a map may be in the group of this name; an empty one: it names none. Those without
/// versions have no clock that they could share.
[[nodiscard]] constexpr bool is_group_of(std::string_view name, bool versions) {
  return name.size() <= kObjectNameBytesMax && (name.empty() || versions);
}
inline constexpr std::string_view kVersionsOfGroup =
    "a map of a group keeps versions, and the group's name has 1 to 255 bytes";

/// A description by its kind follows: of a map MapShape, of a table TableFacts and its schema, of a
/// sequencer SequencerFacts.
struct ObjectEntry {
  std::uint64_t entries;  // items of a map, rows of a table, numbers of an epoch
  std::uint64_t memory_bytes;
  std::uint8_t kind;        // ObjectKind
  std::uint8_t durability;  // what holds for it, as a number; 0: an older node
  std::uint8_t reserved[6];
};
static_assert(sizeof(ObjectEntry) == 24 && offsetof(ObjectEntry, kind) == 16);
static_assert(offsetof(ObjectEntry, durability) == 17);
static_assert(std::has_unique_object_representations_v<ObjectEntry>);

}  // namespace espalier::wire
