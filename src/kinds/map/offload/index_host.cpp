// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/index_host.hpp"

#include <utility>

#include "base/bytes.hpp"
#include "base/places.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "engine/services.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/offload/prefix_of_most.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {

// Only packet transports know region keys that sessions share.
IndexHost* IndexHost::of(EndpointSide& endpoint) {
  const std::string_view transport = endpoint.properties.transport;
  if (!endpoint.one_sided || (transport != "roce" && transport != "sim")) return nullptr;
  return &endpoint.parts.of<IndexHost>(endpoint.services.store, endpoint.regions,
                                       &endpoint.services.part<MapServices>().index_reads);
}

Result<std::shared_ptr<IndexedMap>> IndexHost::offer(const std::shared_ptr<tree::MapCore>& map,
                                                     std::string_view low, std::string_view high) {
  const bool few = low == high;
  const std::string prefix = few ? "" : prefix_of(*map, low, high);
  std::erase_if(maps_, [](const auto& entry) {
    const auto core = entry.second->map_.lock();
    return core == nullptr || core->dropped.load(std::memory_order_acquire);
  });
  if (const auto known = maps_.find(map->id); known != maps_.end()) {
    const IndexedMap& offered = *known->second;
    const bool good = few || prefix.starts_with(offered.prefix_);
    if (good && !(offered.provisional_ && !prefix.empty())) return known->second;
  } else if (maps_.size() >= kMapsMax) {
    return base::full(base::Places::indexed_maps, kMapsMax);
  }
  auto made = std::make_shared<IndexedMap>();
  made->map_ = map;
  made->id_ = map->id;
  made->prefix_ = prefix;
  made->provisional_ = few;
  auto reads = MapReads::create(store_, map, made->prefix_, counts_);
  if (!reads) return std::unexpected(reads.error());
  made->shared_ = std::make_shared<fabric::SharedMap>(std::move(*reads));
  auto keyed = offer_keyed(*map, made->shared_);
  if (!keyed) return std::unexpected(keyed.error());
  made->keyed_ = std::move(*keyed);
  maps_[map->id] = made;
  return made;
}

// A map that lies on several nodes has one key on all of them, unless that key is taken here, or
// the map was offered anew: its clients then get a further key.
Result<fabric::Registration> IndexHost::offer_keyed(
    const tree::MapCore& map, const std::shared_ptr<fabric::SharedMap>& shared) {
  if (map.shard != nullptr) {
    auto agreed = regions_.offer_agreed(shared, fabric::RegionTable::agreed_key(map.shard->uid));
    if (agreed || agreed.error().code != Code::already_exists) return agreed;
  }
  return regions_.offer_shared(shared, fabric::SharedKind::keyed);
}

// Without an epoch slot, the prefix shared by all keys.
std::string IndexHost::prefix_of(const tree::MapCore& map, std::string_view low,
                                 std::string_view high) {
  auto slot = store_.epochs.join();
  if (slot) return prefix_of_most(map, low, high, *slot);
  return std::string(low.substr(0, base::common_prefix_bytes(low, high)));
}

Result<fabric::Registration> IndexHost::offer_redirect(IndexedMap& map) {
  return regions_.offer_shared(map.shared_, fabric::SharedKind::redirect, store_.region.bytes());
}

void IndexHost::retire(fabric::Registration redirect) {
  if (!redirect) return;
  if (!base::planted(dataplane::Bug::entry_outlives_lease)) redirect.make_void();
  void_keys_.push_back(std::move(redirect));
  if (void_keys_.size() > kVoidKeysMax) void_keys_.pop_front();
}

}  // namespace espalier::offload
