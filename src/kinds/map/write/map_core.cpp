// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/map_core.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/redo_record.hpp"
#include "memory/buffer_cache.hpp"
#include "store/clock_groups.hpp"
#include "store/store_core.hpp"
#include "wire/one_sided.hpp"

namespace espalier::tree {
namespace {

const std::uint32_t kHeaderClass = memory::table_class_of(sizeof(wire::MapHeader));

}  // namespace

MapCore::MapCore(StoreCore& store_in, std::uint32_t id_in, std::string name_in,
                 const MapOptions& options_in, std::unique_ptr<store::ClockMember> group_in)
    : store(store_in),
      base(store_in.region.at(0)),
      name(std::move(name_in)),
      options(options_in),
      node_class(memory::node_class_of(options_in.node_bytes)),
      group(std::move(group_in)),
      clock(group->clock() != nullptr ? group->clock()->clock() : own_clock_) {
  memory = base;
  region_bytes = store.region.bytes();
  id = id_in;
  versions = options.versions;
  geometry = Geometry::of(options);
}

Result<std::unique_ptr<MapCore>> MapCore::create(StoreCore& store, std::uint32_t id,
                                                 std::string name, const MapOptions& options) {
  if (!Geometry::valid(options)) return fail(Code::invalid_argument);
  auto group = options.versions ? store.groups->join(options.group, options.durability)
                                : Result<store::ClockMember>();
  if (!group) return std::unexpected(group.error());
  std::unique_ptr<MapCore> map(
      new MapCore(store, id, std::move(name), options,
                  std::make_unique<store::ClockMember>(std::move(*group))));
  map->spare_nodes.reserve(kSpareNodes);
  const auto header = store.pool.allocate_or_reclaim(kHeaderClass);
  if (!header) return std::unexpected(header.error());
  map->header_offset = *header;
  if (const auto table = map->table.create(store.region, store.pool, id); !table) {
    store.pool.release(map->header_offset, kHeaderClass);
    map->header_offset = 0;
    return std::unexpected(table.error());
  }
  if (const auto root = map->make_root(); !root) return std::unexpected(root.error());
  store.reclaimer.add(*map, map->name, map->clock, options.snapshot_bytes_max);
  store.objects.add(*map);
  return map;
}

// Without spares an erase in a full store could fail, so a map is not created without them.
Result<void> MapCore::put_spares_by() {
  while (spare_nodes.size() < spares_wanted()) {
    const auto spare = store.pool.allocate_or_reclaim(node_class);
    if (!spare) return std::unexpected(spare.error());
    spare_nodes.push_back(*spare);
  }
  return {};
}

Result<void> MapCore::make_root() {
  if (const auto lids = table.reserve(1); !lids) return lids;
  const auto buffer = store.pool.allocate_or_reclaim(node_class);
  if (!buffer) return std::unexpected(buffer.error());
  root = table.allocate();
  NodeFrame frame;
  frame.map_id = id;
  frame.lid = root;
  frame.self = ref_of(at(*buffer));
  build_leaf(at(*buffer), geometry, {}, frame);
  go_live(at(*buffer), 0);
  table.set(root, ref_of(at(*buffer)), 0);

  std::byte* header = at(header_offset);
  wire::MapHeader fields{};
  fields.map_id = id;
  fields.magic = wire::kMapMagic;
  fields.format = wire::kMapFormat;
  fields.node_bytes = options.node_bytes;
  fields.log_bytes = options.log_bytes;
  fields.versions = options.versions ? 1 : 0;
  fields.directory_offset = table.directory_offset();
  fields.root = root;
  clock_offset = group->clock() != nullptr
                     ? group->clock()->place()
                     : header_offset + offsetof(wire::MapHeader, read_version);
  fields.clock_offset = clock_offset;
  const auto* bytes = reinterpret_cast<const std::byte*>(&fields);
  constexpr std::size_t kHead = sizeof(wire::NodeHeader);
  write_shared_head(header, id, bytes);
  std::memcpy(header + kHead, bytes + kHead, sizeof fields - kHead);
  go_live(header, wire::kNoNode);
  header_generation =
      base::load_shared<std::uint32_t>(header + offsetof(wire::MapHeader, generation));
  directory_offset = table.directory_offset();
  own_clock_.attach({.read = header + offsetof(wire::MapHeader, read_version),
                     .write = header + offsetof(wire::MapHeader, write_version)},
                    options.versions);
  return put_spares_by();
}

// Other threads must not find it while its nodes are freed.
void MapCore::begin_freeing() {
  if (std::exchange(freeing_.begun, true)) return;
  store.reclaimer.forget(*this);
  store.objects.remove(*this);
  if (root != 0) freeing_.way[freeing_.depth++] = {root, 0};
}

void MapCore::free_node(const Freeing::Level& level) {
  const wire::Ref ref = table.get(level.lid);
  const NodeView node = view(ref);
  if (node.leaf()) {
    for_stored_values(node, [this](const char* reference) {
      wire::ValueRef value;
      std::memcpy(&value, reference, sizeof value);
      const memory::SizeClass of =
          memory::BufferPool::class_of(sizeof(wire::ValueHeader) + value.bytes);
      store.pool.release(wire::Ref{value.ref}.offset(), of);
      freeing_.bytes += memory::BufferPool::class_bytes(of);
    });
  }
  store.pool.release(ref.offset(), node_class);
  freeing_.bytes += memory::BufferPool::class_bytes(node_class);
}

bool MapCore::free_some(std::uint32_t steps) {
  begin_freeing();
  while (freeing_.depth != 0 && steps != 0) {
    Freeing::Level& level = freeing_.way[freeing_.depth - 1];
    const NodeView node = view(table.get(level.lid));
    if (node.leaf() || level.next_child == node.children()) {
      free_node(level);
      --freeing_.depth;
      --steps;
      continue;
    }
    const wire::Lid child = node.child(level.next_child++);
    ESPALIER_ASSERT(freeing_.depth < freeing_.way.size());
    freeing_.way[freeing_.depth++] = {child, 0};
  }
  return freeing_.depth == 0;
}

void MapCore::repack_spares() {
  const std::lock_guard lock(spare_mutex);
  store.pool.repack(node_class, spare_nodes);
}

std::uint64_t MapCore::memory_bytes() const {
  std::uint64_t bytes = value_bytes.load(std::memory_order_relaxed);
  std::uint64_t nodes =
      leaves.load(std::memory_order_relaxed) + interior_nodes.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(spare_mutex);
    nodes += spare_nodes.size();
  }
  bytes += nodes * memory::BufferPool::class_bytes(node_class);
  bytes += table.bytes();
  return bytes + store.reclaimer.waiting(*this, false).bytes;
}

bool MapCore::refill_spares(memory::BufferCache& cache) {
  const std::lock_guard lock(spare_mutex);
  while (spare_nodes.size() < spares_wanted()) {
    const auto spare = cache.allocate(node_class);
    if (!spare) return false;
    spare_nodes.push_back(*spare);
  }
  spares_taken.store(false, std::memory_order_relaxed);
  return true;
}

void MapCore::set_dropped() {
  if (!planted(Bug::drop_not_shown)) {
    base::store_shared<std::uint64_t>(at(header_offset) + offsetof(wire::MapHeader, superseded), 0,
                                      std::memory_order_release);
  }
  dropped.store(true, std::memory_order_release);
  group->leave();
}

void MapCore::record_to(catalog::RedoSink* sink) {
  base::DurableMark* const mark = sink != nullptr ? &sink->mark() : nullptr;
  if (group->clock() != nullptr) {
    group->clock()->wait_for_records(mark);
  } else {
    clock.wait_for_records(mark);
  }
  Object::record_to(sink);
  if (options.versions && promises_async(sink)) answer_early();
}

MapCore::~MapCore() {
  own_clock_.wait_for_records(nullptr);  // while the clock's words in the header exist
  if (header_offset == 0) {
    store.reclaimer.forget(*this);
    return;
  }
  while (!free_some(std::numeric_limits<std::uint32_t>::max())) {
  }
  for (const std::uint64_t spare : spare_nodes) store.pool.release(spare, node_class);
  table.destroy();
  store.pool.release(header_offset, kHeaderClass);
}

void MapCore::count_reads(std::string_view lids) const {
  std::array<wire::Lid, wire::kSampledLeavesMax> read{};
  if (lids.empty() || lids.size() % sizeof(wire::Lid) != 0 || lids.size() > sizeof read) return;
  std::memcpy(read.data(), lids.data(), lids.size());
  heat.add(std::span(read).first(lids.size() / sizeof(wire::Lid)), base::monotonic_ns());
}

}  // namespace espalier::tree
