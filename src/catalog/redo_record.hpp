// SPDX-License-Identifier: Apache-2.0
// The head of all redo records, and how records are written and read (docs/formats/records.md).
//
//   0       8        12     13     14         16
//   +-------+--------+------+------+----------+------------------
//   | bytes | object | kind | type | reserved | content by type
//   +-------+--------+------+------+----------+------------------
//
// Readers treat a record as foreign bytes: each length is checked before it is used.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "espalier/error.hpp"
#include "espalier/kind.hpp"

namespace espalier::catalog {

struct RedoHead {
  std::uint64_t bytes;   // of the whole record
  std::uint32_t object;  // its id; 0: not of an object
  std::uint8_t kind;     // ObjectKind
  std::uint8_t type;     // RedoType, or a type of the kind
  std::uint16_t reserved;
};
static_assert(sizeof(RedoHead) == 16 && offsetof(RedoHead, object) == 8);
static_assert(offsetof(RedoHead, kind) == 12 && offsetof(RedoHead, type) == 13);
static_assert(offsetof(RedoHead, reserved) == 14);
static_assert(std::has_unique_object_representations_v<RedoHead>);

/// Types that every kind has; a kind's own types begin at kOwnRedoTypes.
enum class RedoType : std::uint8_t {
  invalid = 0,
  created = 1,
  dropped = 2,
  transaction = 3,  // records of several objects: catalog/transaction_record.hpp
  client = 4,       // of no object: catalog/client_record.hpp
  renamed = 5,
};
inline constexpr std::uint8_t kOwnRedoTypes = 16;

/// Why bytes are not a record: the detail of Code::corrupt. The numbers are never reused.
enum class RedoFault : std::uint32_t {
  invalid = 0,
  too_short = 1,   // it ends within a field
  bytes = 2,       // not as long as it says
  reserved = 3,    // a field that must be 0 is not
  kind = 4,        // no kind, or another one
  type = 5,        // not a type of the kind
  object = 6,      // another object, or none
  name = 7,        // missing, too long, or another object's
  form = 8,        // no object can be made of it
  count = 9,       // too few or too many elements
  key_bytes = 10,  // an empty or too long key
  value = 11,      // an invalid or too long value
  place = 12,      // not where the object continues: a record before it is missing
  version = 13,    // a version where the map keeps none, or none where it does
};
[[nodiscard]] std::string_view text_of(RedoFault fault);

[[nodiscard]] inline std::unexpected<Error> corrupt(RedoFault fault) {
  return fail(Code::corrupt, static_cast<std::uint32_t>(fault));
}

[[nodiscard]] inline RedoHead redo_head(ObjectKind kind, std::uint32_t object, std::uint8_t type,
                                        std::size_t bytes) {
  return {bytes, object, static_cast<std::uint8_t>(kind), type, 0};
}

/// Reads a record's head. Errors: corrupt (detail: a RedoFault).
[[nodiscard]] inline Result<RedoHead> read_redo_head(std::string_view record) {
  RedoHead head{};
  if (record.size() < sizeof head) return corrupt(RedoFault::too_short);
  std::memcpy(&head, record.data(), sizeof head);
  if (head.bytes != record.size()) return corrupt(RedoFault::bytes);
  if (head.reserved != 0) return corrupt(RedoFault::reserved);
  if (head.kind == 0) return corrupt(RedoFault::kind);
  if (head.type == 0) return corrupt(RedoFault::type);
  return head;
}

/// The same for a record of one kind.
[[nodiscard]] inline Result<RedoHead> read_redo_head(std::string_view record, ObjectKind kind) {
  auto head = read_redo_head(record);
  if (head && head->kind != static_cast<std::uint8_t>(kind)) return corrupt(RedoFault::kind);
  return head;
}

/// Writes a record part by part into room that it fills.
class RedoWriter {
 public:
  explicit RedoWriter(std::span<std::byte> room) : left_(room) {}

  template <class T>
  void part(const T& fields) {
    text(base::bytes_of(fields));
  }
  void text(std::string_view bytes) {
    ESPALIER_ASSERT(bytes.size() <= left_.size());
    if (!bytes.empty()) std::memcpy(left_.data(), bytes.data(), bytes.size());
    left_ = left_.subspan(bytes.size());
  }
  [[nodiscard]] bool full() const { return left_.empty(); }

 private:
  std::span<std::byte> left_;
};

}  // namespace espalier::catalog
