// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/map_object.hpp"

#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/object_redo.hpp"
#include "catalog/samples.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_stats.hpp"
#include "store/durable_store.hpp"
#include "store/store_core.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::tree {
namespace {

void let_go(MapCore* map) {
  std::unique_ptr<MapCore> last(map);
  if (!map->dropped.load(std::memory_order_acquire)) return;  // the store ends
  store::DroppedObjects& dropped = map->store.dropped;
  dropped.add(std::move(last));
}

Result<std::shared_ptr<MapCore>> make(StoreCore& store, std::uint32_t id, std::string name,
                                      const MapOptions& options,
                                      std::unique_ptr<const wire::ShardMap> shard) {
  auto made = MapCore::create(store, id, std::move(name), options);
  if (!made) return std::unexpected(made.error());
  (*made)->shard = std::move(shard);
  return std::shared_ptr<MapCore>(made->release(), let_go);
}

// Borders are keys, which limits them more than wire::kShardMapBytesMax.
static_assert(sizeof(wire::MapShape) + sizeof(wire::ShardMapHeader) +
                  wire::kShardsMax * (sizeof(wire::ShardHead) + wire::kKeyBytesMax +
                                      wire::kShardAddressBytesMax) <=
              catalog::kFormBytesMax);

// What a record says that a map is made of: its shape, and behind it the group's name, or of a
// shard the shard map.
std::string form_of(const MapOptions& options, const wire::ShardMap* shard) {
  std::string form(base::bytes_of(shape_of(options)));
  form += options.group;
  if (shard != nullptr) form += wire::bytes_of(*shard);
  return form;
}

struct MapForm {
  MapOptions options;
  std::unique_ptr<const wire::ShardMap> shard;
};

Result<MapForm> read_form(std::string_view form) {
  wire::PayloadReader reader(form);
  const auto shape = reader.take<wire::MapShape>();
  if (!reader.good()) return catalog::corrupt(catalog::RedoFault::form);
  const std::string_view group = shape.group_bytes != 0 ? reader.rest() : std::string_view();
  if (map_calls::fault_of_shape(shape, group)) return catalog::corrupt(catalog::RedoFault::form);
  MapForm read{options_of(shape, group), nullptr};
  if (!Geometry::valid(read.options)) return catalog::corrupt(catalog::RedoFault::form);
  if (!group.empty() || reader.rest().empty()) return read;
  auto shard = wire::read_shard_map(reader.rest(), Geometry::of(read.options).key_bytes_max);
  if (!shard) return catalog::corrupt(catalog::RedoFault::form);
  read.shard = std::make_unique<const wire::ShardMap>(std::move(*shard));
  return read;
}

Result<MapOptions> agreed_options(const StoreCore& store, MapOptions options) {
  const auto durability = agreed_durability(store.catalog, options.durability);
  if (!durability) return std::unexpected(durability.error());
  options.durability = *durability;
  if (!wire::is_group_of(options.group, options.versions)) return fail(Code::invalid_argument);
  if (!options.versions && must_be_durable(store.catalog, *durability)) {
    return fail(Code::unsupported);
  }
  return options;
}

}  // namespace

Result<std::shared_ptr<MapCore>> create_map(StoreCore& store, std::string_view name,
                                            const MapOptions& asked) {
  const auto options = agreed_options(store, asked);
  if (!options) return std::unexpected(options.error());
  return store.catalog.create<MapCore>(
      name, form_of(*options, nullptr),
      [&](std::uint32_t id, std::string own_name) {
        return make(store, id, std::move(own_name), *options, nullptr);
      },
      options->durability);
}

Result<std::shared_ptr<MapCore>> create_shard(StoreCore& store, std::string_view name,
                                              const MapOptions& asked, wire::ShardMap shard) {
  if (!Geometry::valid(asked) || !asked.group.empty()) return fail(Code::invalid_argument);
  const wire::ShardFault fault = wire::fault_of(shard, Geometry::of(asked).key_bytes_max);
  if (fault != wire::ShardFault::invalid) {
    return fail(Code::invalid_argument, static_cast<std::uint32_t>(fault));
  }
  const auto options = agreed_options(store, asked);
  if (!options) return std::unexpected(options.error());
  return store.catalog.create<MapCore>(
      name, form_of(*options, &shard),
      [&](std::uint32_t id, std::string own_name) {
        return make(store, id, std::move(own_name), *options,
                    std::make_unique<const wire::ShardMap>(std::move(shard)));
      },
      options->durability);
}

Result<std::shared_ptr<MapCore>> restore_map(StoreCore& store,
                                             const catalog::CreatedObject& created) {
  auto form = read_form(created.form);
  if (!form) return std::unexpected(form.error());
  form->options.durability = created.durability;
  return store.catalog.restore<MapCore>(created, [&](std::uint32_t id, std::string own_name) {
    return make(store, id, std::move(own_name), form->options, std::move(form->shard));
  });
}

map_calls::Opened opened_of(const MapCore& map) {
  return {map.id, shape_of(map.options, map.geometry.key_bytes_max), map.options.group,
          wire::number_of(map.options.durability)};
}

std::string MapCore::description() const {
  return std::string(base::bytes_of(opened_of(*this).shape)) + options.group;
}

catalog::ObjectNumbers MapCore::numbers() const { return {items.sum(), memory_bytes()}; }

// Metrics of its feed are espalier_feed_, and not espalier_map_feed_.
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
  to.gauge({"write_version", "",
            "The last version that a write has taken; what lies between is on its way."},
           stats.write_version);
  to.counter({"log_merges", "", "Leaves rebuilt because their logs were full."}, stats.log_merges);
  to.counter({"splits", "", "Leaves split."}, stats.splits);
  to.counter({"redistributions", "", "Splits avoided by giving items to a neighbour."},
             stats.redistributions);
  to.counter({"merges", "", "Nodes merged."}, stats.merges);
  to.counter({"hints_admitted", "", "Requests' hints that named a node as it was."},
             hints.admitted.sum());
  to.counter({"hints_moved", "", "Hints of nodes that had moved, entered where they were by then."},
             hints.moved.sum());
  to.counter({"hints_refused", "", "Hints that named no node: the walk began at the root."},
             hints.refused.sum());
  const MappingFeed::Numbers feed = table.feed().numbers();
  to.gauge({"feed_followers", "", "Readers from elsewhere that follow its mapping feed."},
           feed.followers);
  to.counter({"feed_entries", "", "Moves of nodes that its mapping feed has told."}, feed.entries);
  to.counter(
      {"feed_gaps", "",
       "Times that entries of its feed may be missing: one was left out, or the feed was off."},
      feed.gaps);
}

}  // namespace espalier::tree
