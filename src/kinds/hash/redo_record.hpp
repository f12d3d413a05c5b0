// SPDX-License-Identifier: Apache-2.0
// Redo records of writes to a hash map (docs/formats/records.md).
//
//   0      16        24            28          30   31         32
//   +------+---------+-------------+-----------+----+----------+-----+-------
//   | head | version | value bytes | key bytes | op | reserved | key | value
//   +------+---------+-------------+-----------+----+----------+-----+-------
//
//   0      16        24
//   +------+---------+   of versions that were taken by then, in a copy of the map; or that readers
//   | head | version |   may see before the records of their writes are durable
//   +------+---------+
//
// A record holds the outcome: an insert, an update or a sum is logged as a put, and a condition
// that held is left out.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::hash {

/// The types of a hash map's records.
enum class RedoType : std::uint8_t {
  invalid = 0,
  written = catalog::kOwnRedoTypes,
  counted = 17,  // versions up to this one were taken, or may have been seen
};

enum class RedoOp : std::uint8_t { invalid = 0, put = 1, erase = 2 };

struct HashWrittenRecord {
  catalog::RedoHead head;
  std::uint64_t version;  // 0 where the map keeps none
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint8_t op;  // RedoOp
  std::uint8_t reserved;
};
static_assert(sizeof(HashWrittenRecord) == 32 && offsetof(HashWrittenRecord, version) == 16);
static_assert(offsetof(HashWrittenRecord, value_bytes) == 24);
static_assert(offsetof(HashWrittenRecord, key_bytes) == 28);
static_assert(offsetof(HashWrittenRecord, op) == 30 && offsetof(HashWrittenRecord, reserved) == 31);
static_assert(std::has_unique_object_representations_v<HashWrittenRecord>);

struct HashCountedRecord {
  catalog::RedoHead head;
  std::uint64_t version;
};
static_assert(sizeof(HashCountedRecord) == 24 && offsetof(HashCountedRecord, version) == 16);
static_assert(std::has_unique_object_representations_v<HashCountedRecord>);

[[nodiscard]] inline std::size_t written_bytes(std::string_view key, std::string_view value) {
  return sizeof(HashWrittenRecord) + key.size() + value.size();
}
/// Writes the record of a write. Requires: so many bytes.
inline void write_written(std::span<std::byte> to, std::uint32_t map, std::uint64_t version,
                          RedoOp op, std::string_view key, std::string_view value) {
  HashWrittenRecord record{};
  record.head = catalog::redo_head(ObjectKind::hash, map,
                                   static_cast<std::uint8_t>(RedoType::written), to.size());
  record.version = version;
  record.value_bytes = static_cast<std::uint32_t>(value.size());
  record.key_bytes = static_cast<std::uint16_t>(key.size());
  record.op = static_cast<std::uint8_t>(op);
  catalog::RedoWriter writer(to);
  writer.part(record);
  writer.text(key);
  writer.text(value);
}

/// Writes the record of versions up to this one. Requires: so many bytes.
inline void write_counted(std::span<std::byte> to, std::uint32_t map,
                          std::uint64_t version) noexcept {
  HashCountedRecord record{};
  record.head = catalog::redo_head(ObjectKind::hash, map,
                                   static_cast<std::uint8_t>(RedoType::counted), to.size());
  record.version = version;
  catalog::RedoWriter(to).part(record);
}

/// A write as parsed from its record, into which it points. Without an op: a version alone.
struct HashRedo {
  std::uint32_t map = 0;
  std::uint64_t version = 0;
  RedoOp op = RedoOp::invalid;
  std::string_view key;
  std::string_view value;  ///< empty where it erases
};

/// Parses a record of arbitrary bytes. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<HashRedo> read_hash_redo(std::string_view record,
                                                     std::size_t value_bytes_max) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::hash);
  if (!head) return std::unexpected(head.error());
  const auto type = static_cast<RedoType>(head->type);
  if (type != RedoType::written && type != RedoType::counted) {
    return catalog::corrupt(RedoFault::type);
  }
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  if (type == RedoType::counted) {
    const auto counted = reader.take<HashCountedRecord>();
    if (!reader.complete()) return catalog::corrupt(RedoFault::bytes);
    if (counted.version == 0) return catalog::corrupt(RedoFault::version);
    return HashRedo{head->object, counted.version, RedoOp::invalid, {}, {}};
  }
  const auto fields = reader.take<HashWrittenRecord>();
  const HashRedo redo{head->object, fields.version, static_cast<RedoOp>(fields.op),
                      reader.text(fields.key_bytes), reader.text(fields.value_bytes)};
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (!reader.complete()) return catalog::corrupt(RedoFault::bytes);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  if (redo.op != RedoOp::put && redo.op != RedoOp::erase) return catalog::corrupt(RedoFault::type);
  if (redo.key.empty()) return catalog::corrupt(RedoFault::key_bytes);
  const std::size_t most = redo.op == RedoOp::erase ? 0 : value_bytes_max;
  if (redo.value.size() > most) return catalog::corrupt(RedoFault::value);
  return redo;
}

}  // namespace espalier::hash
