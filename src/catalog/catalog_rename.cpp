// SPDX-License-Identifier: Apache-2.0
// Renames (catalog.hpp). Entries are immutable, since other threads hold them: a renamed object
// gets a new entry, and its name and its id lead to that entry from one moment of the lock on.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"

namespace espalier::catalog {
namespace {

std::unexpected<Error> fail_of_kind(Code code, const Entry& entry) {
  return fail(code, static_cast<std::uint32_t>(entry.kind));
}

}  // namespace

/// A rename with all its memory allocated.
struct Catalog::Rename {
  Rename(EntryPointer object_in, EntryPointer other_in, std::string_view to,
         std::string_view other_to, std::uint32_t number_in)
      : object(std::move(object_in)), other(std::move(other_in)), number(number_in) {
    renamed = under(*object, to);
    own_name = to;
    key = to;
    if (other == nullptr || other_to.empty()) return;
    other_renamed = under(*other, other_to);
    other_name = other_to;
  }
  static std::shared_ptr<Entry> under(const Entry& entry, std::string_view name) {
    auto made = std::make_shared<Entry>(entry);
    made->name = name;
    return made;
  }

  EntryPointer object;
  EntryPointer other;  // has the new name; null: none
  std::uint32_t number;
  std::shared_ptr<Entry> renamed;
  std::shared_ptr<Entry> other_renamed;  // null: it is dropped
  std::string own_name;                  // for the objects
  std::string other_name;
  std::string key;
};

// Allocates nothing: each name and id already leads to an entry.
void Catalog::carry_out(Rename& rename, std::uint64_t sequence) noexcept {
  const auto lead = [this](const std::shared_ptr<Entry>& entry) {
    by_id_.find(entry->id)->second = entry;
  };
  rename.renamed->created = std::max(rename.renamed->created, sequence);
  const auto own = by_name_.find(rename.object->name);
  ESPALIER_ASSERT(own != by_name_.end() && own->second == rename.object);
  // The objects first: a reader that knows the number of a rename sees its effect.
  rename.object->object->set_renamed(rename.own_name, rename.number);
  if (rename.other_renamed != nullptr) {
    rename.other_renamed->created = std::max(rename.other_renamed->created, sequence);
    rename.other->object->set_renamed(rename.other_name, rename.number);
    own->second = rename.other_renamed;
    by_name_.find(rename.key)->second = rename.renamed;
    lead(rename.other_renamed);
  } else {
    if (rename.other != nullptr) take_away(rename.other);
    auto node = by_name_.extract(own);
    node.key() = std::move(rename.key);
    node.mapped() = rename.renamed;
    by_name_.insert(std::move(node));
  }
  lead(rename.renamed);
  renames_.store(rename.number, std::memory_order_release);
}

Result<EntryPointer> Catalog::rename(std::string_view name, std::string_view to, ObjectKind kind,
                                     Displaced displaced) {
  if (!is_name(to) || name == to) return fail(Code::invalid_argument);
  const bool exchanges = displaced == Displaced::exchanged;
  RenamedObject record{kind, 0, 0, 0, to, exchanges ? name : std::string_view()};
  auto room = reserve_renamed(redo_, record);
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  const EntryPointer object = found->second;
  if (kind != ObjectKind::any && object->kind != kind) {
    return fail_of_kind(Code::wrong_kind, *object);
  }
  const auto there = by_name_.find(to);
  const EntryPointer other = there == by_name_.end() ? nullptr : there->second;
  if (other == nullptr && exchanges) return fail(Code::not_found, 1);
  if (other != nullptr && displaced == Displaced::refused) {
    return fail_of_kind(Code::already_exists, *other);
  }
  if (other != nullptr && other->kind != object->kind) {
    return fail_of_kind(Code::wrong_kind, *other);
  }
  const std::uint32_t before = renames_.load();
  if (!object->object->may_be_renamed() || before >= kRenamesMax) {
    return fail(Code::unsupported, static_cast<std::uint32_t>(object->kind));
  }
  Rename rename(object, other, to, record.other_name, before + 1);
  record.kind = object->kind;
  record.id = object->id;
  record.rename = rename.number;
  record.other = other == nullptr ? 0 : other->id;
  const std::uint64_t sequence = finish_renamed(*room, record);
  recorded_.store(std::max(recorded_.load(), sequence));
  carry_out(rename, sequence);
  return rename.other_renamed == nullptr ? other : nullptr;
}

// The names of a copy come from all renames up to a number, so records of these change nothing;
// later records find the names that they found originally.
Result<EntryPointer> Catalog::rename_again(const RenamedObject& renamed) {
  ESPALIER_ASSERT(redo_ == nullptr);
  const std::lock_guard lock(mutex_);
  if (renamed.rename <= renames_.load()) return nullptr;
  if (renamed.id == 0) {
    renames_.store(renamed.rename);
    return nullptr;
  }
  const auto by_id = [this](std::uint32_t id) {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
  };
  const EntryPointer object = by_id(renamed.id);
  const EntryPointer other = renamed.other == 0 ? nullptr : by_id(renamed.other);
  for (const EntryPointer& each : {object, other}) {
    if (each == nullptr) continue;  // a copy may be ahead: it was dropped
    if (each->kind != renamed.kind || !each->object->may_be_renamed()) {
      return corrupt(RedoFault::kind);
    }
    const std::string_view to = each == object ? renamed.name : renamed.other_name;
    const auto there = to.empty() ? by_name_.end() : by_name_.find(to);
    const bool free = there == by_name_.end() || there->second == object || there->second == other;
    if (!free) return corrupt(RedoFault::name);
  }
  const auto let_go = [this](const EntryPointer& entry) {
    if (entry != nullptr) by_name_.erase(entry->name);
  };
  const auto name_again = [&](const EntryPointer& entry, std::string_view to) {
    const std::shared_ptr<Entry> again = Rename::under(*entry, to);
    std::string own_name(to);
    entry->object->set_renamed(own_name, renamed.rename);
    by_name_.emplace(again->name, again);
    by_id_[again->id] = again;
  };
  const bool drops = other != nullptr && renamed.other_name.empty();
  let_go(object);
  if (drops) take_away(other);
  if (!drops) let_go(other);
  if (object != nullptr) name_again(object, renamed.name);
  if (other != nullptr && !drops) name_again(other, renamed.other_name);
  renames_.store(renamed.rename, std::memory_order_release);
  return drops ? other : nullptr;
}

}  // namespace espalier::catalog
