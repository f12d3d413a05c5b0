// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/map_table.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "catalog/catalog.hpp"
#include "engine/free_dropped.hpp"
#include "engine/services.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

MapsElsewhere* elsewhere_of(const Services& services, std::uint32_t shard) {
  const auto* const maps = services.parts.find<NodeMapsElsewhere>();
  if (maps == nullptr) return nullptr;
  ESPALIER_ASSERT(shard < maps->of_scheduler.size());
  return maps->of_scheduler[shard];
}

}  // namespace

MapTable::MapTable(Services& services, std::uint32_t shard)
    : services_(services), shard_(shard), elsewhere_(elsewhere_of(services, shard)) {}

ServedMap* MapTable::look_up(std::uint32_t number) {
  auto known = maps_.find(number);
  if (known == maps_.end()) {
    auto served = serve(number);
    if (served == nullptr) return nullptr;
    base::reserve_more(walking_, maps_.size() + 1 - walking_.size());
    known = maps_.emplace(number, std::move(served)).first;
  }
  if (known->second->dropped()) return nullptr;
  last_number_ = number;
  last_ = known->second.get();
  return last_;
}

std::unique_ptr<ServedMap> MapTable::serve(std::uint32_t number) {
  if (elsewhere_ != nullptr) return elsewhere_->serve(number);
  auto core = services_.catalog().find<tree::MapCore>(number);
  if (core == nullptr) return nullptr;
  auto walks = services_.store.epochs.join();
  auto calls = services_.store.epochs.join();
  if (!walks || !calls) return nullptr;
  return std::make_unique<HostMap>(std::move(core), std::move(*walks), std::move(*calls), shard_);
}

bool MapTable::step() {
  if (walking_.empty()) return false;
  std::erase_if(walking_, [](ServedMap* map) {
    map->walking = map->advance() != 0;
    return !map->walking;
  });
  return true;
}

// Frees on another thread, since that takes time by the size of the map.
void MapTable::let_go_of_dropped() {
  std::erase_if(maps_, [this](auto& entry) {
    ServedMap& map = *entry.second;
    if (!map.dropped() || map.users != 0 || map.walking) return false;
    if (last_ == &map) last_ = nullptr;
    begin_to_free(services_, map.keep());
    return true;
  });
  // The last reference may have been released elsewhere, for example by a snapshot.
  if (services_.store.dropped.due()) begin_to_free(services_);
}

}  // namespace espalier::offload
