// SPDX-License-Identifier: Apache-2.0
#include "tree/write/map_object.hpp"

#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "tree/map_forms.hpp"

namespace espalier::tree {
namespace {

void let_go(MapCore* map) {
  std::unique_ptr<MapCore> last(map);
  if (!map->dropped.load(std::memory_order_acquire)) return;  // the store ends
  DroppedMaps& dropped = map->store.dropped;
  dropped.add(std::move(last));
}

// `finish`: called with the map before anybody else can find it.
template <class Finish>
Result<std::shared_ptr<MapCore>> make(StoreCore& store, std::string_view name,
                                      const MapOptions& options, const Finish& finish) {
  return store.catalog.create<MapCore>(
      name, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<MapCore>> {
        auto made = MapCore::create(store, id, std::move(own_name), options);
        if (!made) return std::unexpected(made.error());
        if (const auto finished = finish(**made); !finished) {
          return std::unexpected(finished.error());
        }
        return std::shared_ptr<MapCore>(made->release(), let_go);
      });
}

}  // namespace

Result<std::shared_ptr<MapCore>> create_map(StoreCore& store, std::string_view name,
                                            const MapOptions& options) {
  return make(store, name, options, [](MapCore&) -> Result<void> { return {}; });
}

Result<std::shared_ptr<MapCore>> create_shard(StoreCore& store, std::string_view name,
                                              const MapOptions& options, wire::ShardMap shard) {
  return make(store, name, options, [&](MapCore& map) -> Result<void> {
    const wire::ShardFault fault = wire::fault_of(shard, map.geometry.key_bytes_max);
    if (fault != wire::ShardFault::invalid) {
      return fail(Code::invalid_argument, static_cast<std::uint32_t>(fault));
    }
    map.shard = std::make_unique<const wire::ShardMap>(std::move(shard));
    return {};
  });
}

map_calls::Opened opened_of(const MapCore& map) {
  return {map.id, shape_of(map.options, map.geometry.key_bytes_max), {}};
}

std::string MapCore::description() const {
  return std::string(base::bytes_of(opened_of(*this).shape));
}

catalog::ObjectNumbers MapCore::numbers() const { return {items.sum(), memory_bytes()}; }

}  // namespace espalier::tree
