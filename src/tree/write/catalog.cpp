// SPDX-License-Identifier: Apache-2.0
#include "tree/write/catalog.hpp"

#include <utility>

namespace espalier::tree {

Result<std::shared_ptr<MapCore>> Catalog::create(std::string_view name, const MapOptions& options) {
  if (name.empty() || name.size() > kNameBytesMax) return fail(Code::invalid_argument);
  const std::lock_guard lock(mutex_);
  if (by_name_.contains(name)) return fail(Code::already_exists);
  if (next_id_ == 0) return fail(Code::unsupported);
  auto made = MapCore::create(store_, next_id_, std::string(name), options);
  if (!made) return std::unexpected(made.error());
  std::shared_ptr<MapCore> core(made->release(), [](MapCore* map) {
    std::unique_ptr<MapCore> last(map);
    if (!map->dropped.load(std::memory_order_acquire)) return;  // the store ends
    DroppedMaps& dropped = map->store.dropped;
    dropped.add(std::move(last));
  });
  by_id_.emplace(next_id_++, core);
  by_name_.emplace(std::string(name), core);
  return core;
}

Result<std::shared_ptr<MapCore>> Catalog::open(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  return found->second;
}

std::shared_ptr<MapCore> Catalog::find(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<MapCore>> Catalog::drop(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return fail(Code::not_found);
  std::shared_ptr<MapCore> core = std::move(found->second);
  by_name_.erase(found);
  by_id_.erase(core->id);
  core->set_dropped();
  return core;
}

std::vector<std::string> Catalog::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  names.reserve(by_name_.size());
  for (const auto& [name, core] : by_name_) names.push_back(name);
  return names;
}

}  // namespace espalier::tree
