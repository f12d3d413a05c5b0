// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "catalog/object_redo.hpp"

namespace espalier::catalog {
namespace {

bool suits(const Entry& entry, ObjectKind kind) {
  return kind == ObjectKind::any || entry.kind == kind;
}

std::unexpected<Error> fail_for(Code code, const Entry& entry) {
  return fail(code, static_cast<std::uint32_t>(entry.kind));
}

}  // namespace

void Catalog::record_to(RedoSink* sink) {
  const std::lock_guard lock(mutex_);
  redo_ = sink;
  for (const auto& [id, entry] : by_id_) entry->object->promise(entry->durability, sink);
}

// Does everything that may fail before a look-up can find the object.
Result<std::shared_ptr<Entry>> Catalog::make_entry(const CreatedObject& created, const Make& make) {
  auto made = make(created.id, std::string(created.name));
  if (!made) return std::unexpected(made.error());
  ESPALIER_ASSERT(*made != nullptr);
  (*made)->promise(created.durability, redo_);
  const auto entry = std::make_shared<Entry>(Entry{created.kind, created.id,
                                                   std::string(created.name), std::move(*made), 0,
                                                   std::string(created.form), created.durability});
  const auto by_name = by_name_.emplace(entry->name, entry).first;
  try {
    by_id_.emplace(entry->id, entry);
  } catch (...) {  // no memory: the entry is in both or in none
    by_name_.erase(by_name);
    throw;
  }
  return entry;
}

Result<EntryPointer> Catalog::add(const NewObject& object, const Make& make) {
  ESPALIER_ASSERT(object.kind != ObjectKind::any);
  if (!is_name(object.name)) return fail(Code::invalid_argument);
  CreatedObject created{object.kind, 0, object.name, object.form, object.durability};
  auto room = reserve_created(redo_, created);
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  if (const auto found = by_name_.find(object.name); found != by_name_.end()) {
    return fail_for(Code::already_exists, *found->second);
  }
  if (next_id_ == 0) return fail(Code::unsupported);
  created.id = next_id_;
  const auto entry = make_entry(created, make);
  if (!entry) return std::unexpected(entry.error());
  // Under the lock, so that ids ascend in the sink's order, and before a look-up can find the
  // object.
  (*entry)->created = finish_created(*room, next_id_++);
  recorded_.store((*entry)->created);
  return *entry;
}

// The state may already contain some of the records that are applied. So an object that is there is
// no error if later records explain it.
Result<EntryPointer> Catalog::put_back(const CreatedObject& created, ObjectKind kind,
                                       const Make& make) {
  ESPALIER_ASSERT(redo_ == nullptr);
  if (created.kind != kind) return corrupt(RedoFault::kind);
  if (created.id == 0) return corrupt(RedoFault::object);
  if (!is_name(created.name)) return corrupt(RedoFault::name);
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(created.id); found != by_id_.end()) {
    const Entry& there = *found->second;
    if (there.kind != created.kind) return corrupt(RedoFault::kind);
    const bool may_be_later = renames_.load() != 0;  // a copy has later names
    if (there.name != created.name && !may_be_later) return corrupt(RedoFault::name);
    return nullptr;
  }
  if (was_given(created.id)) return nullptr;  // it was dropped
  if (by_name_.contains(created.name)) return corrupt(RedoFault::name);
  const auto entry = make_entry(created, make);
  if (!entry) return std::unexpected(entry.error());
  set_given(created.id);
  return *entry;
}

Result<EntryPointer> Catalog::look_up(std::string_view name, ObjectKind kind) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  if (!suits(*found->second, kind)) return fail_for(Code::wrong_kind, *found->second);
  return found->second;
}

EntryPointer Catalog::look_up(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

EntryPointer Catalog::take_away(EntryPointer entry) {
  by_name_.erase(entry->name);
  by_id_.erase(entry->id);
  entry->object->set_dropped();
  return entry;
}

Result<EntryPointer> Catalog::drop(std::string_view name, ObjectKind kind, std::uint32_t id) {
  auto room = reserve_dropped(redo_);
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  const bool is_there = found != by_name_.end() && (id == 0 || found->second->id == id);
  if (!is_there) return fail(Code::not_found);
  if (!suits(*found->second, kind)) return fail_for(Code::wrong_kind, *found->second);
  recorded_.store(finish_dropped(*room, {found->second->kind, found->second->id}));
  return take_away(found->second);
}

Result<EntryPointer> Catalog::drop_again(const DroppedObject& dropped) {
  ESPALIER_ASSERT(redo_ == nullptr);
  if (dropped.id == 0) return corrupt(RedoFault::object);
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(dropped.id);
  if (found == by_id_.end()) {
    set_given(dropped.id);
    return nullptr;
  }
  if (found->second->kind != dropped.kind) return corrupt(RedoFault::kind);
  return take_away(found->second);
}

std::vector<EntryPointer> Catalog::list(ObjectKind kind) const {
  const std::lock_guard lock(mutex_);
  std::vector<EntryPointer> all;
  for (const auto& [name, entry] : by_name_) {
    if (suits(*entry, kind)) all.push_back(entry);
  }
  return all;
}

Inventory Catalog::inventory() const {
  Inventory now;
  {
    const std::lock_guard lock(mutex_);
    now.entries.reserve(by_id_.size());
    for (const auto& [id, entry] : by_id_) now.entries.push_back(entry);
    now.given = next_id_ - 1;  // once all are used up, the highest id
    now.renames = renames_.load();
  }
  std::ranges::sort(now.entries, {}, &Entry::id);
  return now;
}

std::vector<std::string> Catalog::names(ObjectKind kind) const {
  std::vector<std::string> all;
  for (const EntryPointer& entry : list(kind)) all.push_back(entry->name);
  return all;
}

}  // namespace espalier::catalog
