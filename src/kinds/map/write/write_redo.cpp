// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/write_redo.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {
namespace {

// What a write says of the value, which may lie in a buffer of its own.
std::string_view value_of(const MapCore& map, const WriteIntent& intent) {
  if (intent.op == Op::erase) return {};
  return intent.out_of_line ? stored_value(map, intent.value) : intent.value;
}

WrittenRecord fields_of(const MapCore& map, RedoType type, std::size_t bytes, std::size_t writes) {
  WrittenRecord record{};
  record.head = catalog::redo_head(ObjectKind::map, map.id, static_cast<std::uint8_t>(type), bytes);
  record.writes = static_cast<std::uint32_t>(writes);
  return record;
}

}  // namespace

Result<WriteRedo> WriteRedo::of_writes(const MapCore& map,
                                       std::span<const WriteIntent> writes) noexcept {
  if (map.redo() == nullptr) return WriteRedo();
  std::size_t bytes = sizeof(WrittenRecord);
  for (const WriteIntent& intent : writes) {
    bytes += sizeof(WriteFields) + intent.key->bytes() + value_of(map, intent).size();
  }
  auto room = catalog::RedoRoom::reserve(map.redo(), bytes);
  if (!room) return std::unexpected(room.error());
  catalog::RedoWriter writer(room->bytes());
  writer.part(fields_of(map, RedoType::written, bytes, writes.size()));
  for (const WriteIntent& intent : writes) {
    const std::string_view key = intent.key->view();
    const std::string_view value = value_of(map, intent);
    const WriteOp op = intent.op == Op::erase ? WriteOp::erase : WriteOp::put;
    writer.part(WriteFields{static_cast<std::uint32_t>(value.size()),
                            static_cast<std::uint16_t>(key.size()), static_cast<std::uint8_t>(op),
                            0});
    writer.text(key);
    writer.text(value);
  }
  ESPALIER_ASSERT(writer.full());
  return WriteRedo(std::move(*room));
}

Result<WriteRedo> WriteRedo::of_structure(const MapCore& map) noexcept {
  if (map.redo() == nullptr) return WriteRedo();
  auto room = catalog::RedoRoom::reserve(map.redo(), sizeof(WrittenRecord));
  if (!room) return std::unexpected(room.error());
  catalog::RedoWriter(room->bytes())
      .part(fields_of(map, RedoType::restructured, sizeof(WrittenRecord), 0));
  return WriteRedo(std::move(*room));
}

void WriteRedo::hand_over_now(std::uint64_t version) noexcept {
  std::memcpy(room_.bytes().data() + offsetof(WrittenRecord, version), &version, sizeof version);
  sequence_ = room_.hand_over();
}

}  // namespace espalier::tree
