// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

#include "base/assert.hpp"

namespace espalier::catalog {
namespace {

bool suits(const Entry& entry, ObjectKind kind) {
  return kind == ObjectKind::any || entry.kind == kind;
}

std::unexpected<Error> fail_for(Code code, const Entry& entry) {
  return fail(code, static_cast<std::uint32_t>(entry.kind));
}

}  // namespace

Result<EntryPointer> Catalog::add(std::string_view name, ObjectKind kind, const Make& make) {
  ESPALIER_ASSERT(kind != ObjectKind::any);
  if (!is_name(name)) return fail(Code::invalid_argument);
  const std::lock_guard lock(mutex_);
  if (const auto found = by_name_.find(name); found != by_name_.end()) {
    return fail_for(Code::already_exists, *found->second);
  }
  if (next_id_ == 0) return fail(Code::unsupported);
  auto made = make(next_id_, std::string(name));
  if (!made) return std::unexpected(made.error());
  ESPALIER_ASSERT(*made != nullptr);
  const auto entry =
      std::make_shared<const Entry>(Entry{kind, next_id_++, std::string(name), std::move(*made)});
  const auto by_name = by_name_.emplace(entry->name, entry).first;
  try {
    by_id_.emplace(entry->id, entry);
  } catch (...) {  // no memory: it is in both or in none
    by_name_.erase(by_name);
    throw;
  }
  return entry;
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

Result<EntryPointer> Catalog::drop(std::string_view name, ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  if (!suits(*found->second, kind)) return fail_for(Code::wrong_kind, *found->second);
  EntryPointer entry = std::move(found->second);
  by_name_.erase(found);
  by_id_.erase(entry->id);
  entry->object->set_dropped();
  return entry;
}

std::vector<EntryPointer> Catalog::list(ObjectKind kind) const {
  const std::lock_guard lock(mutex_);
  std::vector<EntryPointer> all;
  for (const auto& [name, entry] : by_name_) {
    if (suits(*entry, kind)) all.push_back(entry);
  }
  return all;
}

std::vector<std::string> Catalog::names(ObjectKind kind) const {
  std::vector<std::string> all;
  for (const EntryPointer& entry : list(kind)) all.push_back(entry->name);
  return all;
}

}  // namespace espalier::catalog
