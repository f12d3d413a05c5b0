// SPDX-License-Identifier: Apache-2.0
// Maps as objects of their store's catalogue (catalog/catalog.hpp): StoreCore::catalog opens, finds
// and drops them; here they are made.
//
// A map that was dropped goes, when the last holder lets go, to those that wait for readers
// elsewhere (store/dropped_objects.hpp); one that is left when its store ends goes at once.
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

/// Makes an empty map with a name in its store. The store must outlive it.
/// Cost: as MapCore::create; whoever looks for an object waits meanwhile.
/// Errors: those of Catalog::create, invalid_argument (options, its group's
/// name), too_many_participants (of groups), unsupported (without versions,
/// where it must be durable; those of agreed_durability()), out_of_memory; std::bad_alloc, and then
/// there is no such map.
Result<std::shared_ptr<MapCore>> create_map(StoreCore& store, std::string_view name,
                                            const MapOptions& options);
/// The same of a shard. Errors: besides, invalid_argument (what is wrong with `shard` for a map of
/// these options; detail: a wire::ShardFault).
Result<std::shared_ptr<MapCore>> create_shard(StoreCore& store, std::string_view name,
                                              const MapOptions& options, wire::ShardMap shard);

/// Makes a map again that a record tells of; null: there is nothing to make (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<MapCore>> restore_map(StoreCore& store,
                                             const catalog::CreatedObject& created);

/// What those are told who make or open one; of a shard without its shard map.
[[nodiscard]] map_calls::Opened opened_of(const MapCore& map);

}  // namespace espalier::tree
