// SPDX-License-Identifier: Apache-2.0
// The state of one map on its host.
//
// MapCore has no algorithms: walks read through it (walk/walker.hpp), writers change leaves
// (leaf_write.hpp), and structure changes hold its lock (structure.hpp).
//
// Lock order:
//   structure lock -> leaf locks in ascending key order -> reclaimer, page table
//   catalogue -> objects of the store, reclaimer -> spare nodes -> pool
// No lock is held while a walk waits, and no version is taken before all locks are held (rule 11).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "catalog/object.hpp"
#include "espalier/types.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "kinds/map/walk/map_view.hpp"
#include "kinds/map/write/leaf_heat.hpp"
#include "kinds/map/write/page_table.hpp"
#include "memory/version_clock.hpp"
#include "memory/versioned_object.hpp"
#include "store/stored_object.hpp"

namespace espalier::wire {
struct ShardMap;
}

namespace espalier::store {
class ClockMember;
}

namespace espalier::tree {

struct StoreCore;

/// A counter sharded over threads.
class ShardedCounter {
 public:
  void add(std::uint32_t shard, std::int64_t amount) {
    shards_[shard % kShards].value.fetch_add(amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t sum() const {
    std::int64_t total = 0;
    for (const Shard& shard : shards_) total += shard.value.load(std::memory_order_relaxed);
    return total < 0 ? 0 : static_cast<std::uint64_t>(total);
  }

 private:
  static constexpr std::uint32_t kShards = 16;
  struct alignas(64) Shard {
    std::atomic<std::int64_t> value{0};
  };
  Shard shards_[kShards];
};

/// One map: the view for reading, and the state for writing. Lives as long as it is referenced,
/// dropped or not (map_object.hpp).
class MapCore final : public MapView,
                      public catalog::Object,
                      public memory::VersionedObject,
                      public store::StoredObject {
 public:
  static constexpr ObjectKind kKind = ObjectKind::map;

  static Result<std::unique_ptr<MapCore>> create(StoreCore& store, std::uint32_t id,
                                                 std::string name, const MapOptions& options);
  ~MapCore() override;
  MapCore(const MapCore&) = delete;
  MapCore& operator=(const MapCore&) = delete;

  [[nodiscard]] std::byte* at(std::uint64_t offset) const { return base + offset; }
  [[nodiscard]] NodeView view(wire::Ref ref) const { return {at(ref.offset()), geometry}; }
  [[nodiscard]] NodeView node(wire::Lid lid) const { return view(table.get(lid)); }
  [[nodiscard]] wire::Ref ref_of(const std::byte* node) const {
    return wire::Ref::make(static_cast<std::uint64_t>(node - base),
                           NodeView(node, geometry).generation());
  }

  StoreCore& store;
  std::byte* const base;
  const std::string name;
  const MapOptions options;
  const std::uint32_t node_class;

  PageTable table;
  const std::unique_ptr<store::ClockMember> group;  // never null
  memory::VersionClock& clock;                      // its own or its group's
  /// Set once, when the map loses its name: holders should then answer that the map does not exist.
  /// Its structure stays intact, so requests in flight need not check.
  std::atomic<bool> dropped{false};
  [[nodiscard]] bool is_dropped() const override { return dropped.load(std::memory_order_acquire); }
  static constexpr std::size_t kLevelsMax = 64;  // with two children each, more nodes than LIDs
  /// A step frees a node, with its values.
  bool free_some(std::uint32_t steps) override;
  [[nodiscard]] std::uint64_t freed_bytes() const override { return freeing_.bytes; }
  /// Sets `dropped`, also in the map's header, where remote readers look.
  void set_dropped() override;
  void record_to(catalog::RedoSink* sink) override;
  /// Of a shard: its key range, and the places of the others. Null: the whole map is here. Set
  /// before the map can be found, then constant.
  std::unique_ptr<const wire::ShardMap> shard;
  std::mutex structure;  // splits, merges and all else that changes interior nodes

  // Node buffers reserved for erases, which must succeed in a full store because they free memory.
  // The list's capacity is reserved from the beginning.
  mutable std::mutex spare_mutex;
  std::vector<std::uint64_t> spare_nodes;  // guarded by spare_mutex
  static constexpr std::size_t kSpareNodes = 32;
  [[nodiscard]] std::size_t spares_wanted() const {
    return std::min<std::size_t>(kSpareNodes, (1u << 20) / options.node_bytes);
  }
  std::atomic<bool> spares_taken{false};  // by erases: there are fewer than wanted
  /// Reserves again what erases have taken, as far as there is memory. Returns whether that is all.
  bool refill_spares(memory::BufferCache& cache);
  [[nodiscard]] bool refill_reserve(memory::BufferCache& cache) noexcept override {
    return planted(Bug::reserve_not_refilled) || refill_spares(cache);
  }
  /// Has them lie where other nodes lie, so that they keep no extents for themselves.
  void repack_spares() override;
  // Refills the spares first: otherwise writes of other threads, short of memory too, would take
  // each freed buffer, and an erase would find none.
  void buffer_freed(memory::SizeClass size_class, memory::BufferCache& cache) noexcept override {
    if (spares_taken.load(std::memory_order_relaxed) && size_class == node_class) {
      refill_spares(cache);
    }
  }
  [[nodiscard]] memory::VersionClock* transaction_clock() override {
    return options.versions ? &clock : nullptr;
  }
  [[nodiscard]] Result<std::unique_ptr<catalog::TransactionPart>> transaction_part(
      std::span<const catalog::TransactionStep> steps, catalog::TransactionPlaces& places) override;
  void release_id(std::uint32_t lid) noexcept override { table.release(lid); }

  /// wire::MapShape.
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;
  /// `lids`: LIDs of leaves.
  void count_reads(std::string_view lids) const override;
  /// Bytes of all its buffers: nodes, values, page table, reserved and retired ones.
  [[nodiscard]] std::uint64_t memory_bytes() const override;

  ShardedCounter items;
  std::atomic<std::uint64_t> leaves{1};
  /// Whether prefetching the path to a leaf pays: with more leaves than kNearLeaves, interior nodes
  /// and page table no longer fit a core's cache.
  [[nodiscard]] bool far_interior() const {
    return leaves.load(std::memory_order_relaxed) > kNearLeaves;
  }
  static constexpr std::uint64_t kNearLeaves = 100'000;
  std::atomic<std::uint64_t> interior_nodes{0};
  std::atomic<std::uint32_t> height{1};  // levels of nodes; a lone leaf is 1
  std::atomic<std::uint64_t> value_bytes{0};
  ShardedCounter log_merges;
  std::atomic<std::uint64_t> splits{0};
  std::atomic<std::uint64_t> redistributions{0};
  std::atomic<std::uint64_t> merges{0};
  mutable LeafHeat heat;
  /// Counts of hints in requests (host_place.hpp).
  struct Hints {
    ShardedCounter admitted;  // they named a node as it was
    ShardedCounter moved;     // or one that had moved, and was entered where it was by then
    ShardedCounter refused;   // or none: the walk began at the root
    ShardedCounter astray;    // of the first two: the node had other keys, as groups have found
  };
  Hints hints;

 private:
  MapCore(StoreCore& store_in, std::uint32_t id_in, std::string name_in,
          const MapOptions& options_in, std::unique_ptr<store::ClockMember> group_in);
  Result<void> put_spares_by();
  Result<void> make_root();

  /// Progress of freeing the nodes of a dropped map.
  struct Freeing {
    struct Level {
      wire::Lid lid;
      std::uint32_t next_child;
    };
    bool begun = false;
    std::uint32_t depth = 0;
    std::array<Level, kLevelsMax> way{};  // path from the root
    std::uint64_t bytes = 0;              // bytes freed
  };
  void begin_freeing();
  void free_node(const Freeing::Level& level);
  Freeing freeing_;
  memory::VersionClock own_clock_;
};

}  // namespace espalier::tree
