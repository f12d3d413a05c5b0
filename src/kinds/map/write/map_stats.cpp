// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/map_stats.hpp"

#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::tree {

MapStats stats_of(const MapCore& core) {
  const auto waiting = core.store.reclaimer.waiting(core, false);
  MapStats stats;
  stats.items = core.items.sum();
  stats.leaves = core.leaves.load(std::memory_order_relaxed);
  stats.interior_nodes = core.interior_nodes.load(std::memory_order_relaxed);
  stats.height = core.height.load(std::memory_order_relaxed);
  stats.node_bytes = (stats.leaves + stats.interior_nodes) * core.options.node_bytes;
  stats.value_bytes = core.value_bytes.load(std::memory_order_relaxed);
  stats.retired_bytes = waiting.bytes;
  stats.log_merges = core.log_merges.sum();
  stats.splits = core.splits.load(std::memory_order_relaxed);
  stats.redistributions = core.redistributions.load(std::memory_order_relaxed);
  stats.merges = core.merges.load(std::memory_order_relaxed);
  stats.read_version = core.clock.released();
  stats.write_version = core.clock.taken();
  stats.snapshots = waiting.snapshots;
  return stats;
}

}  // namespace espalier::tree
