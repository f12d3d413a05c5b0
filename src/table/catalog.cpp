// SPDX-License-Identifier: Apache-2.0
#include "table/catalog.hpp"

#include <utility>

namespace espalier::table {

Result<std::shared_ptr<Table>> TableCatalog::create(std::string_view name, Schema schema,
                                                    TableOptions options) {
  if (name.empty() || name.size() > kNameBytesMax) return fail(Code::invalid_argument);
  const std::lock_guard lock(mutex_);
  if (by_name_.contains(name)) return fail(Code::already_exists);
  if (next_number_ == wire::kTableIdBit) return fail(Code::unsupported);
  const std::uint32_t id = wire::kTableIdBit | next_number_;
  auto made = Table::create(pool_, id, std::string(name), std::move(schema), options);
  if (!made) return std::unexpected(made.error());
  ++next_number_;
  std::shared_ptr<Table> table = *std::move(made);
  by_id_.emplace(id, table);
  by_name_.emplace(std::string(name), table);
  return table;
}

Result<std::shared_ptr<Table>> TableCatalog::open(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  return found->second;
}

std::shared_ptr<Table> TableCatalog::find(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<Table>> TableCatalog::drop(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  std::shared_ptr<Table> table = std::move(found->second);
  by_name_.erase(found);
  by_id_.erase(table->id());
  table->set_dropped();
  return table;
}

std::vector<std::string> TableCatalog::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  names.reserve(by_name_.size());
  for (const auto& [name, table] : by_name_) names.push_back(name);
  return names;
}

}  // namespace espalier::table
