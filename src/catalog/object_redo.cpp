// SPDX-License-Identifier: Apache-2.0
#include "catalog/object_redo.hpp"

#include "wire/object.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::catalog {
namespace {

constexpr auto kCreated = static_cast<std::uint8_t>(RedoType::created);
constexpr auto kDropped = static_cast<std::uint8_t>(RedoType::dropped);
constexpr auto kRenamed = static_cast<std::uint8_t>(RedoType::renamed);

// Whether a record's fields are consistent. A record of no object carries only the count.
std::optional<RedoFault> fault_of_renamed(const RenamedRecord& record) {
  const RedoHead& head = record.head;
  if (record.rename == 0 || record.rename > kRenamesMax) return RedoFault::count;
  if (head.object == 0) {
    const bool bare = record.other == 0 && record.name_bytes == 0 && record.other_bytes == 0;
    return bare ? std::nullopt : std::optional(RedoFault::object);
  }
  if (record.other == head.object) return RedoFault::object;
  const bool good = record.name_bytes != 0 && record.name_bytes <= wire::kObjectNameBytesMax &&
                    record.other_bytes <= wire::kObjectNameBytesMax &&
                    (record.other != 0 || record.other_bytes == 0);
  return good ? std::nullopt : std::optional(RedoFault::name);
}

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

std::size_t renamed_bytes(const RenamedObject& object) {
  return sizeof(RenamedRecord) + object.name.size() + object.other_name.size();
}

void write_renamed(std::span<std::byte> to, const RenamedObject& object) noexcept {
  RenamedRecord record{};
  record.head = redo_head(object.kind, object.id, kRenamed, renamed_bytes(object));
  record.rename = object.rename;
  record.other = object.other;
  record.name_bytes = static_cast<std::uint16_t>(object.name.size());
  record.other_bytes = static_cast<std::uint16_t>(object.other_name.size());
  RedoWriter writer(to);
  writer.part(record);
  writer.text(object.name);
  writer.text(object.other_name);
  ESPALIER_ASSERT(writer.full());
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

Result<RedoRoom> reserve_renamed(RedoSink* sink, const RenamedObject& object) noexcept {
  return RedoRoom::reserve(sink, renamed_bytes(object));
}

std::uint64_t finish_renamed(RedoRoom& room, const RenamedObject& renamed) noexcept {
  if (!room) return 0;
  write_renamed(room.bytes(), renamed);
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

Result<RenamedObject> read_renamed(std::string_view record) {
  const auto head = read_redo_head(record);
  if (!head) return std::unexpected(head.error());
  if (head->type != kRenamed) return corrupt(RedoFault::type);
  wire::PayloadReader reader(record);
  const auto fields = reader.take<RenamedRecord>();
  if (!reader.good()) return corrupt(RedoFault::too_short);
  if (fields.reserved != 0) return corrupt(RedoFault::reserved);
  if (const auto fault = fault_of_renamed(fields)) return corrupt(*fault);
  RenamedObject renamed{static_cast<ObjectKind>(head->kind), head->object, fields.rename,
                        fields.other};
  renamed.name = reader.text(fields.name_bytes);
  renamed.other_name = reader.text(fields.other_bytes);
  if (!reader.complete()) return corrupt(RedoFault::bytes);
  return renamed;
}

}  // namespace espalier::catalog
