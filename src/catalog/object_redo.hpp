// SPDX-License-Identifier: Apache-2.0
// Records of objects that are made, dropped and renamed (docs/formats/records.md).
//
//   created   0      16           20           22           23         24
//             +------+------------+------------+------------+----------+------+------
//             | head | form bytes | name bytes | durability | reserved | name | form
//             +------+------------+------------+------------+----------+------+------
//   dropped   the head alone
//   renamed   0      16       20      24           26            28         32
//             +------+--------+-------+------------+-------------+----------+------+------------
//             | head | rename | other | name bytes | other bytes | reserved | name | other name
//             +------+--------+-------+------------+-------------+----------+------+------------
//
// Renames are numbered, so one that a copy of the store has already is left out. `other` is the
// object that had the name, if there was one: it was dropped, or has the other name now. A copy
// says by a record of no object and no names how many renames it has.
//
// The form is what the object's kind makes it of, in bytes of that kind. A name is given again, an
// id never: so records name objects by their ids. Ids ascend in the order of created records, so
// one that is not there although a higher one was given belongs to an object that was dropped, and
// what is said of it is left out (Catalog::restore, docs/design/records.md).
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::catalog {

struct CreatedRecord {
  RedoHead head;
  std::uint32_t form_bytes;
  std::uint16_t name_bytes;  // 1 to 255
  std::uint8_t durability;   // wire/object.hpp; 0: what the store promises of all
  std::uint8_t reserved;
};
static_assert(sizeof(CreatedRecord) == 24 && offsetof(CreatedRecord, form_bytes) == 16);
static_assert(offsetof(CreatedRecord, name_bytes) == 20 &&
              offsetof(CreatedRecord, durability) == 22);
static_assert(std::has_unique_object_representations_v<CreatedRecord>);

struct RenamedRecord {
  RedoHead head;         // of no object: 0, and so are all others but the number
  std::uint32_t rename;  // its number, from 1 on
  std::uint32_t other;   // the object that had the name, or 0
  std::uint16_t name_bytes;
  std::uint16_t other_bytes;  // 0: that one was dropped
  std::uint32_t reserved;
};
static_assert(sizeof(RenamedRecord) == 32 && offsetof(RenamedRecord, rename) == 16);
static_assert(offsetof(RenamedRecord, other) == 20 && offsetof(RenamedRecord, name_bytes) == 24);
static_assert(offsetof(RenamedRecord, other_bytes) == 26 &&
              offsetof(RenamedRecord, reserved) == 28);
static_assert(std::has_unique_object_representations_v<RenamedRecord>);

/// Numbers of renames are no higher.
inline constexpr std::uint32_t kRenamesMax = 0xFFFFFFFE;

/// A form is no longer than this: the longest schema of a table fits, and the longest shard map.
inline constexpr std::uint32_t kFormBytesMax = std::uint32_t{1} << 20;

/// An object that was made, as its record says. Points into it.
struct CreatedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string_view name{};
  std::string_view form{};
  std::optional<Durability> durability{};  ///< that it was made with; nothing: that of its store
};

/// An object that was dropped, as its record says.
struct DroppedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;

  friend bool operator==(const DroppedObject&, const DroppedObject&) = default;
};

/// An object that was renamed, as its record says. Points into it.
struct RenamedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;  ///< 0: the record says only how many renames there were
  std::uint32_t rename = 0;
  std::uint32_t other = 0;  ///< that had the name, of the same kind; 0: none
  std::string_view name{};
  std::string_view other_name{};  ///< that the other one has now; empty: it was dropped

  friend bool operator==(const RenamedObject&, const RenamedObject&) = default;
};

/// Room with the record of an object; of no sink nothing. Its id need not be known yet.
/// Errors: those of the sink. Requires: a name; a form of kFormBytesMax at most.
[[nodiscard]] Result<RedoRoom> reserve_created(RedoSink* sink,
                                               const CreatedObject& object) noexcept;
/// Returns its sequence; does nothing where there is no room, and returns 0, as finish_dropped().
std::uint64_t finish_created(RedoRoom& room, std::uint32_t id) noexcept;

/// Room for the record that an object was dropped. Errors: those of the sink.
[[nodiscard]] Result<RedoRoom> reserve_dropped(RedoSink* sink) noexcept;
std::uint64_t finish_dropped(RedoRoom& room, const DroppedObject& dropped) noexcept;

/// Room for the record of a rename that has these names. Errors: those of the sink.
[[nodiscard]] Result<RedoRoom> reserve_renamed(RedoSink* sink,
                                               const RenamedObject& object) noexcept;
/// Requires: names of these lengths.
std::uint64_t finish_renamed(RedoRoom& room, const RenamedObject& renamed) noexcept;

/// What such records are as bytes, where they are no change of now but part of a copy. Requires: as
/// reserve_created(); so many bytes.
[[nodiscard]] std::size_t created_bytes(const CreatedObject& object);
void write_created(std::span<std::byte> to, const CreatedObject& object) noexcept;
void write_dropped(std::span<std::byte> to, const DroppedObject& object) noexcept;
[[nodiscard]] std::size_t renamed_bytes(const RenamedObject& object);
void write_renamed(std::span<std::byte> to, const RenamedObject& object) noexcept;

/// Reads a record of RedoType::created from any bytes; the form is read by its kind.
/// Errors: corrupt (detail: a RedoFault).
[[nodiscard]] Result<CreatedObject> read_created(std::string_view record);
/// Reads a record of RedoType::dropped from any bytes. Errors: likewise.
[[nodiscard]] Result<DroppedObject> read_dropped(std::string_view record);
/// Reads a record of RedoType::renamed from any bytes. Errors: likewise.
[[nodiscard]] Result<RenamedObject> read_renamed(std::string_view record);

}  // namespace espalier::catalog
