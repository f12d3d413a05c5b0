// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/write_redo.hpp"

#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "kinds/map/redo_record.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {
namespace {

// The bytes of the value, which may be out of line.
std::string_view value_of(const MapCore& map, const WriteIntent& intent) {
  if (intent.op == Op::erase) return {};
  return intent.out_of_line ? stored_value(map, intent.value) : intent.value;
}

}  // namespace

std::size_t WriteRedo::bytes_of(const MapCore& map, std::span<const WriteIntent> writes) noexcept {
  std::size_t bytes = sizeof(WrittenRecord);
  for (const WriteIntent& intent : writes) {
    bytes += sizeof(WriteFields) + intent.key->bytes() + value_of(map, intent).size();
  }
  return bytes;
}

void WriteRedo::write(const MapCore& map, std::span<const WriteIntent> writes,
                      std::span<std::byte> to) noexcept {
  catalog::RedoWriter writer(to);
  writer.part(written_record(RedoType::written, map.id, to.size(), writes.size()));
  for (const WriteIntent& intent : writes) {
    const WriteOp op = intent.op == Op::erase ? WriteOp::erase : WriteOp::put;
    write_fields(writer, op, intent.key->view(), value_of(map, intent));
  }
  ESPALIER_ASSERT(writer.full());
}

WriteRedo::WriteRedo(const MapCore& map, catalog::RedoRoom room)
    : room_(std::move(room)), answers_early_(map.is_async()) {}

Result<WriteRedo> WriteRedo::of_writes(const MapCore& map,
                                       std::span<const WriteIntent> writes) noexcept {
  if (map.redo() == nullptr) return WriteRedo();
  auto room = catalog::RedoRoom::reserve(map.redo(), bytes_of(map, writes));
  if (!room) return std::unexpected(room.error());
  write(map, writes, room->bytes());
  WriteRedo redo(map, std::move(*room));
  if (writes.size() == 1) redo.addition_ = writes.front().addition;
  return redo;
}

Result<WriteRedo> WriteRedo::of_structure(const MapCore& map) noexcept {
  if (map.redo() == nullptr) return WriteRedo();
  auto room = catalog::RedoRoom::reserve(map.redo(), sizeof(WrittenRecord));
  if (!room) return std::unexpected(room.error());
  catalog::RedoWriter(room->bytes())
      .part(written_record(RedoType::restructured, map.id, sizeof(WrittenRecord), 0));
  return WriteRedo(map, std::move(*room));
}

void WriteRedo::hand_over_now(std::uint64_t version) noexcept {
  const std::span<std::byte> bytes = room_.bytes();
  std::memcpy(bytes.data() + offsetof(WrittenRecord, version), &version, sizeof version);
  if (addition_ != nullptr) {
    constexpr std::size_t kBytes = sizeof addition_->sum;
    std::memcpy(bytes.last(kBytes).data(), &addition_->sum, kBytes);
  }
  sequence_ = room_.hand_over();
  if (answers_early_) sequence_ = 0;
}

}  // namespace espalier::tree
