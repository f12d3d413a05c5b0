// SPDX-License-Identifier: Apache-2.0
// Maps as objects of their store's catalogue (catalog/catalog.hpp): StoreCore::catalog opens, finds
// and drops them; they are created here.
//
// When the last reference to a dropped map is released, the map is queued until remote readers are
// done (store/dropped_objects.hpp); a map that exists when its store ends is freed immediately.
#pragma once

#include <memory>
#include <string_view>

#include "espalier/error.hpp"
#include "espalier/types.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/format/shard.hpp"

namespace espalier::catalog {
struct CreatedObject;
}

namespace espalier::tree {

class MapCore;
struct StoreCore;

/// Creates an empty named map in its store, which must outlive it.
/// Cost: as MapCore::create; lookups of objects wait meanwhile.
/// Errors: those of Catalog::create, invalid_argument (options, its group's name),
/// too_many_participants (of groups), unsupported (without versions, if it must be durable; those
/// of agreed_durability()), out_of_memory; std::bad_alloc, with no map created.
Result<std::shared_ptr<MapCore>> create_map(StoreCore& store, std::string_view name,
                                            const MapOptions& options);
/// Creates a shard. Errors: also invalid_argument (`shard` is invalid for a map of these options;
/// detail: a wire::ShardFault).
Result<std::shared_ptr<MapCore>> create_shard(StoreCore& store, std::string_view name,
                                              const MapOptions& options, wire::ShardMap shard);

/// Recreates a map from its record; null: nothing to create (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<MapCore>> restore_map(StoreCore& store,
                                             const catalog::CreatedObject& created);

/// The answer to creating or opening a map; for a shard, without its shard map.
[[nodiscard]] map_calls::Opened opened_of(const MapCore& map);

}  // namespace espalier::tree
