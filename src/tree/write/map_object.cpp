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

}  // namespace

Result<std::shared_ptr<MapCore>> create_map(StoreCore& store, std::string_view name,
                                            const MapOptions& options) {
  return store.catalog.create<MapCore>(
      name, [&](std::uint32_t id, std::string own_name) -> Result<std::shared_ptr<MapCore>> {
        auto made = MapCore::create(store, id, std::move(own_name), options);
        if (!made) return std::unexpected(made.error());
        return std::shared_ptr<MapCore>(made->release(), let_go);
      });
}

std::string MapCore::description() const {
  return std::string(base::bytes_of(tree::shape_of(options, geometry.key_bytes_max)));
}

catalog::ObjectNumbers MapCore::numbers() const { return {items.sum(), memory_bytes()}; }

}  // namespace espalier::tree
