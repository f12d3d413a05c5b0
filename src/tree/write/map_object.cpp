// SPDX-License-Identifier: Apache-2.0
#include "tree/write/map_object.hpp"

#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/samples.hpp"
#include "tree/map_forms.hpp"
#include "tree/write/map_stats.hpp"

namespace espalier::tree {
namespace {

void let_go(MapCore* map) {
  std::unique_ptr<MapCore> last(map);
  if (!map->dropped.load(std::memory_order_acquire)) return;  // the store ends
  store::DroppedObjects& dropped = map->store.dropped;
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

// The names are those of the node's metrics of maps; only that metrics of its feed are
// espalier_feed_, and not espalier_map_feed_.
void MapCore::add_samples(catalog::SampleList& to) const {
  const MapStats stats = stats_of(*this);
  to.gauge({"items", "", "Items."}, stats.items);
  to.gauge({"leaves", "", "Leaf nodes."}, stats.leaves);
  to.gauge({"interior_nodes", "", "Nodes above the leaves."}, stats.interior_nodes);
  to.gauge({"height", "", "Levels of nodes; a lone leaf is 1."}, stats.height);
  to.gauge({"node_bytes", "bytes", "Memory of nodes in the tree."}, stats.node_bytes);
  to.gauge({"value_bytes", "bytes", "Memory of values that lie beside the nodes."},
           stats.value_bytes);
  to.gauge({"retired_bytes", "bytes",
            "Memory that is unlinked and waits for readers or snapshots before it is free."},
           stats.retired_bytes);
  to.gauge({"snapshots", "", "Snapshots held; they keep old versions."}, stats.snapshots);
  to.gauge({"read_version", "", "The version at which reads begin."}, stats.read_version);
  to.gauge({"write_version", "", "The last version that a write has taken."}, stats.write_version);
  to.counter({"log_merges", "", "Leaves rebuilt because their logs were full."}, stats.log_merges);
  to.counter({"splits", "", "Leaves split."}, stats.splits);
  to.counter({"redistributions", "", "Splits avoided by giving items to a neighbour."},
             stats.redistributions);
  to.counter({"merges", "", "Nodes merged."}, stats.merges);
  const MappingFeed::Numbers feed = table.feed().numbers();
  to.gauge({"feed_followers", "", "Readers from elsewhere that follow its mapping feed."},
           feed.followers);
  to.counter({"feed_entries", "", "Moves of nodes that its mapping feed has told."}, feed.entries);
  to.counter({"feed_gaps", "", "Times that entries of its feed may be missing."}, feed.gaps);
}

}  // namespace espalier::tree
