// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_redo.hpp"

#include "wire/object.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::catalog {
namespace {

constexpr auto kCreated = static_cast<std::uint8_t>(RedoType::created);
constexpr auto kDropped = static_cast<std::uint8_t>(RedoType::dropped);

}  // namespace

std::string_view text_of(RedoFault fault) {
  switch (fault) {
    case RedoFault::invalid: break;
    case RedoFault::too_short: return "the record ends within a field";
    case RedoFault::bytes: return "the record is not as long as it says";
    case RedoFault::reserved: return "a reserved field of the record is not 0";
    case RedoFault::kind: return "the record is of an unknown kind of object, or of another one";
    case RedoFault::type: return "the record is of a type that its kind does not have";
    case RedoFault::object: return "the record is of another object";
    case RedoFault::name: return "the record has no name that this object can have";
    case RedoFault::form: return "no object can be made of what the record says";
    case RedoFault::count: return "the record says another number of parts than it has";
    case RedoFault::key_bytes: return "the record has a key that is empty or too long";
    case RedoFault::value: return "the record has a value that cannot be";
    case RedoFault::place: return "a record before this one is missing";
    case RedoFault::version: return "the record has a version that it cannot have";
  }
  return "";
}

std::size_t created_bytes(const CreatedObject& object) {
  return sizeof(CreatedRecord) + object.name.size() + object.form.size();
}

void write_created(std::span<std::byte> to, const CreatedObject& object) noexcept {
  CreatedRecord record{};
  record.head = redo_head(object.kind, object.id, kCreated, created_bytes(object));
  record.form_bytes = static_cast<std::uint32_t>(object.form.size());
  record.name_bytes = static_cast<std::uint16_t>(object.name.size());
  record.durability = static_cast<std::uint8_t>(wire::number_of(object.durability));
  RedoWriter writer(to);
  writer.part(record);
  writer.text(object.name);
  writer.text(object.form);
  ESPALIER_ASSERT(writer.full());
}

void write_dropped(std::span<std::byte> to, const DroppedObject& object) noexcept {
  RedoWriter(to).part(redo_head(object.kind, object.id, kDropped, sizeof(RedoHead)));
}

Result<RedoRoom> reserve_created(RedoSink* sink, const CreatedObject& object) noexcept {
  ESPALIER_ASSERT(object.form.size() <= kFormBytesMax);
  ESPALIER_ASSERT(object.name.size() <= wire::kObjectNameBytesMax);
  auto room = RedoRoom::reserve(sink, created_bytes(object));
  if (room && *room) write_created(room->bytes(), object);
  return room;
}

std::uint64_t finish_created(RedoRoom& room, std::uint32_t id) noexcept {
  if (!room) return 0;
  std::memcpy(room.bytes().data() + offsetof(RedoHead, object), &id, sizeof id);
  return room.hand_over();
}

Result<RedoRoom> reserve_dropped(RedoSink* sink) noexcept {
  return RedoRoom::reserve(sink, sizeof(RedoHead));
}

std::uint64_t finish_dropped(RedoRoom& room, const DroppedObject& dropped) noexcept {
  if (!room) return 0;
  write_dropped(room.bytes(), dropped);
  return room.hand_over();
}

Result<CreatedObject> read_created(std::string_view record) {
  const auto head = read_redo_head(record);
  if (!head) return std::unexpected(head.error());
  if (head->type != kCreated) return corrupt(RedoFault::type);
  if (head->object == 0) return corrupt(RedoFault::object);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<CreatedRecord>();
  if (!reader.good()) return corrupt(RedoFault::too_short);
  if (fields.reserved != 0 || fields.durability > wire::kDurabilityMax) {
    return corrupt(RedoFault::reserved);
  }
  if (fields.name_bytes == 0 || fields.name_bytes > wire::kObjectNameBytesMax) {
    return corrupt(RedoFault::name);
  }
  if (fields.form_bytes > kFormBytesMax) return corrupt(RedoFault::form);
  CreatedObject created{static_cast<ObjectKind>(head->kind), head->object};
  created.durability = wire::durability_of(fields.durability);
  created.name = reader.text(fields.name_bytes);
  created.form = reader.text(fields.form_bytes);
  if (!reader.complete()) return corrupt(RedoFault::bytes);
  return created;
}

Result<DroppedObject> read_dropped(std::string_view record) {
  const auto head = read_redo_head(record);
  if (!head) return std::unexpected(head.error());
  if (head->type != kDropped) return corrupt(RedoFault::type);
  if (head->object == 0) return corrupt(RedoFault::object);
  if (record.size() != sizeof *head) return corrupt(RedoFault::bytes);
  return DroppedObject{static_cast<ObjectKind>(head->kind), head->object};
}

}  // namespace espalier::catalog
