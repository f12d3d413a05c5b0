// SPDX-License-Identifier: Apache-2.0
// Log records of writes to a map (docs/formats/records.md).
//
//   0      16        24       28
//   +------+---------+--------+----------+--- for each write ---------------------+-----
//   | head | version | writes | reserved | value bytes | key bytes | op | reserved | key | value
//   +------+---------+--------+----------+----------------------------------------+-----
//
// A record states effects: an insert or an update is a put, and a condition that held leaves no
// trace. All writes of a record share its version. A change of structure that writes nothing still
// takes a version, which readers see; its record carries the version alone. So does a record that
// reserves versions, which readers may see before the records of their writes are durable.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "catalog/redo_record.hpp"
#include "kinds/map/format/node.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::tree {

/// The types of a map's records.
enum class RedoType : std::uint8_t {
  invalid = 0,
  written = catalog::kOwnRedoTypes,  // a put, an erase or a batch
  restructured = 17,                 // a version was taken without a write
  reserved = 18,                     // readers may have seen versions up to this one
};

struct WrittenRecord {
  catalog::RedoHead head;
  std::uint64_t version;  // 0 where the map keeps none
  std::uint32_t writes;   // number of writes that follow
  std::uint32_t reserved;
};
static_assert(sizeof(WrittenRecord) == 32 && offsetof(WrittenRecord, version) == 16);
static_assert(offsetof(WrittenRecord, writes) == 24 && offsetof(WrittenRecord, reserved) == 28);
static_assert(std::has_unique_object_representations_v<WrittenRecord>);

/// One write; its key and its value follow.
struct WriteFields {
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint8_t op;  // WriteOp
  std::uint8_t reserved;
};
static_assert(sizeof(WriteFields) == 8 && offsetof(WriteFields, key_bytes) == 4);
static_assert(offsetof(WriteFields, op) == 6 && offsetof(WriteFields, reserved) == 7);
static_assert(std::has_unique_object_representations_v<WriteFields>);

enum class WriteOp : std::uint8_t { invalid = 0, put = 1, erase = 2 };

/// The header of a record.
[[nodiscard]] inline WrittenRecord written_record(RedoType type, std::uint32_t map,
                                                  std::size_t bytes, std::size_t writes) {
  WrittenRecord record{};
  record.head = catalog::redo_head(ObjectKind::map, map, static_cast<std::uint8_t>(type), bytes);
  record.writes = static_cast<std::uint32_t>(writes);
  return record;
}

/// Adds a write to a record.
inline void write_fields(catalog::RedoWriter& writer, WriteOp op, std::string_view key,
                         std::string_view value) {
  writer.part(WriteFields{static_cast<std::uint32_t>(value.size()),
                          static_cast<std::uint16_t>(key.size()), static_cast<std::uint8_t>(op),
                          0});
  writer.text(key);
  writer.text(value);
}

/// Writes a record that reserves versions up to `version`. Requires: `to` has
/// sizeof(WrittenRecord).
inline void write_reserved(std::span<std::byte> to, std::uint32_t map,
                           std::uint64_t version) noexcept {
  WrittenRecord record = written_record(RedoType::reserved, map, to.size(), 0);
  record.version = version;
  catalog::RedoWriter(to).part(record);
}

/// One write of a record. Points into it.
struct RedoWrite {
  WriteOp op = WriteOp::invalid;
  std::string_view key;
  std::string_view value;  // empty for an erase
};

/// A record whose header was parsed.
struct MapRedo {
  RedoType type = RedoType::invalid;
  std::uint32_t map = 0;
  std::uint64_t version = 0;
  std::uint32_t writes = 0;
  std::string_view rest;  // the writes, parsed by read_write()
};

/// Parses the header of a record from untrusted bytes.
/// Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<MapRedo> read_map_redo(std::string_view record) {
  using catalog::RedoFault;
  const auto head = catalog::read_redo_head(record, ObjectKind::map);
  if (!head) return std::unexpected(head.error());
  const auto type = static_cast<RedoType>(head->type);
  if (type < RedoType::written || type > RedoType::reserved) {
    return catalog::corrupt(RedoFault::type);
  }
  if (head->object == 0) return catalog::corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<WrittenRecord>();
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  if ((fields.writes != 0) != (type == RedoType::written)) {
    return catalog::corrupt(RedoFault::count);
  }
  return MapRedo{type, head->object, fields.version, fields.writes, reader.rest()};
}

/// Parses the next write. Errors: corrupt (detail: a catalog::RedoFault).
[[nodiscard]] inline Result<RedoWrite> read_write(wire::PayloadReader& reader) {
  using catalog::RedoFault;
  const auto fields = reader.take<WriteFields>();
  RedoWrite write{static_cast<WriteOp>(fields.op), reader.text(fields.key_bytes),
                  reader.text(fields.value_bytes)};
  if (!reader.good()) return catalog::corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return catalog::corrupt(RedoFault::reserved);
  if (write.op != WriteOp::put && write.op != WriteOp::erase) {
    return catalog::corrupt(RedoFault::type);
  }
  if (write.key.empty()) return catalog::corrupt(RedoFault::key_bytes);
  const std::uint32_t most = write.op == WriteOp::erase ? 0 : wire::kValueBytesMax;
  if (fields.value_bytes > most) return catalog::corrupt(RedoFault::value);
  return write;
}

}  // namespace espalier::tree
