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
// Renames are numbered, so a reader skips one that its copy of the store contains already. `other`
// is the object that had the name, if there was one: it was dropped, or has the renamed object's
// former name now. A copy stores its count of renames in a record of no object and no names.
//
// The form is what the object's kind makes it of, in bytes of that kind. Names are reused, ids
// never: so records refer to objects by id. Ids ascend in the order of `created` records, so an id
// that is not there although a higher one was given belongs to a dropped object, and its records
// are skipped (Catalog::restore, docs/design/records.md).
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
  std::uint8_t durability;   // wire/object.hpp; 0: the store's
  std::uint8_t reserved;
};
static_assert(sizeof(CreatedRecord) == 24 && offsetof(CreatedRecord, form_bytes) == 16);
static_assert(offsetof(CreatedRecord, name_bytes) == 20 &&
              offsetof(CreatedRecord, durability) == 22);
static_assert(std::has_unique_object_representations_v<CreatedRecord>);

struct RenamedRecord {
  RedoHead head;         // object 0: all fields but `rename` are 0
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

/// The highest number of a rename.
inline constexpr std::uint32_t kRenamesMax = 0xFFFFFFFE;

/// Longest form: the longest schema of a table fits, and the longest shard map.
inline constexpr std::uint32_t kFormBytesMax = std::uint32_t{1} << 20;

/// A decoded `created` record. Points into its bytes.
struct CreatedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;
  std::string_view name{};
  std::string_view form{};
  std::optional<Durability> durability{};  ///< nothing: that of its store
};

/// A decoded `dropped` record.
struct DroppedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;

  friend bool operator==(const DroppedObject&, const DroppedObject&) = default;
};

/// A decoded `renamed` record. Points into its bytes.
struct RenamedObject {
  ObjectKind kind = ObjectKind::any;
  std::uint32_t id = 0;  ///< 0: only the count of renames
  std::uint32_t rename = 0;
  std::uint32_t other = 0;  ///< had the name, same kind; 0: none
  std::string_view name{};
  std::string_view other_name{};  ///< its name now; empty: it was dropped

  friend bool operator==(const RenamedObject&, const RenamedObject&) = default;
};

/// Reserves room and writes an object's `created` record into it, but for the id; without a sink,
/// nothing. Errors: those of the sink. Requires: a name; a form of at most kFormBytesMax bytes.
[[nodiscard]] Result<RedoRoom> reserve_created(RedoSink* sink,
                                               const CreatedObject& object) noexcept;
/// Sets the id and hands the record over. Returns its sequence; without room does nothing and
/// returns 0, as finish_dropped().
std::uint64_t finish_created(RedoRoom& room, std::uint32_t id) noexcept;

/// Reserves room for a `dropped` record. Errors: those of the sink.
[[nodiscard]] Result<RedoRoom> reserve_dropped(RedoSink* sink) noexcept;
std::uint64_t finish_dropped(RedoRoom& room, const DroppedObject& dropped) noexcept;

/// Reserves room for a `renamed` record with these names. Errors: those of the sink.
[[nodiscard]] Result<RedoRoom> reserve_renamed(RedoSink* sink,
                                               const RenamedObject& object) noexcept;
/// Requires: names of these lengths.
std::uint64_t finish_renamed(RedoRoom& room, const RenamedObject& renamed) noexcept;

/// Such records as bytes of a copy, not of a change made now. Requires: as reserve_created(); `to`
/// has exactly so many bytes.
[[nodiscard]] std::size_t created_bytes(const CreatedObject& object);
void write_created(std::span<std::byte> to, const CreatedObject& object) noexcept;
void write_dropped(std::span<std::byte> to, const DroppedObject& object) noexcept;
[[nodiscard]] std::size_t renamed_bytes(const RenamedObject& object);
void write_renamed(std::span<std::byte> to, const RenamedObject& object) noexcept;

/// Decodes a `created` record from any bytes; the form is left to the kind. Errors: corrupt
/// (detail: a RedoFault).
[[nodiscard]] Result<CreatedObject> read_created(std::string_view record);
/// Decodes a `dropped` record from any bytes. Errors: likewise.
[[nodiscard]] Result<DroppedObject> read_dropped(std::string_view record);
/// Decodes a `renamed` record from any bytes. Errors: likewise.
[[nodiscard]] Result<RenamedObject> read_renamed(std::string_view record);

}  // namespace espalier::catalog
