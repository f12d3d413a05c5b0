// SPDX-License-Identifier: Apache-2.0
// Common parts of structure changes (structure.hpp) and multi-key writes (batch_writer.hpp). All
// require the structure lock.
#pragma once

#include <cstdint>

#include "base/assert.hpp"
#include "kinds/map/write/change.hpp"
#include "kinds/map/write/leaf_write.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

/// Locks the leaf that a LID currently names.
inline std::byte* lock_current(MapCore& map, wire::Lid lid) {
  for (;;) {
    std::byte* leaf = map.at(map.table.get(lid).offset());
    lock_leaf(leaf);
    const NodeView node(leaf, map.geometry);
    ESPALIER_ASSERT(node.map_id() == map.id && node.lid() == lid && node.leaf());
    if (node.superseded() == wire::kLive) return leaf;
    unlock(leaf);  // its log was merged meanwhile
  }
}

/// Levels of nodes, leaves included.
[[nodiscard]] inline std::uint32_t tree_height(const MapCore& map) {
  return map.node(map.root).level() + 1;
}

/// Reserves what a change may need, retrying once after a collection. `lids`: the number of new
/// nodes that may need a new LID. Errors: out_of_memory.
inline Result<void> reserve_change(Change& change, ThreadContext& context, MapCore& map,
                                   std::uint32_t nodes, std::uint32_t lids, bool erase) {
  if (change.reserve(nodes, lids, false)) return {};
  map.store.reclaimer.collect(context.cache);
  return change.reserve(nodes, lids, erase);
}

}  // namespace espalier::tree
