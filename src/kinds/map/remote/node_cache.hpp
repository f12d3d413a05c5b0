// SPDX-License-Identifier: Apache-2.0
// A remote walker's cache of node memory: chunks of interior nodes, and places of nodes. All of it
// is hints: it decides where a walk enters the tree, never what it answers (DESIGN idea 1).
//
//   chunks   256 bytes each, by reference (buffer and generation) and number: a node that moved has
//            another reference, so a copy is never taken for the node's current state
//   places   of nodes: by map and LID, the reference that the page table had
//
// Both are 4-way set-associative tables. Each entry has two possible sets and goes to the second if
// the first is full; a random one of the eight entries is evicted if both are full. (With a single
// set, a fourteenth of the entries finds no room in a table that is three fifths full.) Users
// decide what is cached and when (kinds/map/remote/map_cache.hpp); maps of one store may share a
// cache.
//
// The memory is reserved as a whole and committed by the system page by page on first use. Once
// most pages are in use, they are converted to huge pages, one at a time. If memory cannot be
// reserved, the cache stores nothing.
//
// Thread: one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/random.hpp"
#include "kinds/map/format/node.hpp"
#include "memory/address_range.hpp"

namespace espalier::place {

class NodeCache {
 public:
  static constexpr std::uint32_t kChunkBytes = 256;
  static constexpr std::uint32_t kWays = 4;

  /// `bytes`: limit on its memory.
  explicit NodeCache(std::uint64_t bytes) noexcept;
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  /// A chunk of a node, kChunkBytes long; null: not cached. Valid until the next keep().
  [[nodiscard]] const std::byte* find(wire::Ref ref, std::uint32_t chunk) const;
  /// Prefetches what find() reads except the chunk itself; prefetch_place(), what place() reads.
  void prefetch_tags(wire::Ref ref, std::uint32_t chunk) const;
  void prefetch_place(std::uint32_t map, wire::Lid lid) const;
  /// Caches a chunk of at most kChunkBytes; missing bytes read as zeros.
  void keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes);
  /// The last known place of a node; none: unknown.
  [[nodiscard]] wire::Ref place(std::uint32_t map, wire::Lid lid) const;
  void keep_place(std::uint32_t map, wire::Lid lid, wire::Ref ref);
  /// Drops a chunk, if cached.
  void forget(wire::Ref ref, std::uint32_t chunk);
  /// Replaces the place of a node if it is cached; none: drops it. Returns the old place.
  wire::Ref move_place(std::uint32_t map, wire::Lid lid, wire::Ref ref);
  /// Drops all places of this map. Cost: linear in the size of the place table.
  void forget_places(std::uint32_t map);

  /// Size of its tables.
  [[nodiscard]] std::uint64_t bytes() const {
    return chunks_.count * sizeof(ChunkSet) + places_.count * sizeof(PlaceSet);
  }

 private:
  friend class NodeCacheForger;  // kinds/map/remote/testing/node_cache_forger.hpp

  struct ChunkTag {
    std::uint64_t ref = 0;  // 0: free
    std::uint64_t chunk = 0;
    friend bool operator==(const ChunkTag&, const ChunkTag&) = default;
  };
  struct ChunkSet {
    std::array<ChunkTag, kWays> tags;
    std::byte bytes[kWays][kChunkBytes];
  };
  struct Place {
    std::uint64_t node = 0;  // map above, LID below; 0: free
    std::uint64_t ref = 0;
  };
  struct PlaceSet {
    std::array<Place, kWays> ways;
  };
  /// Zero-initialised sets.
  template <class Set>
  struct Table {
    Set* sets = nullptr;
    std::uint64_t count = 0;
    /// Uses these bytes for as many sets as fit.
    void make(std::byte* at, std::uint64_t bytes) {
      count = bytes / sizeof(Set);
      sets = reinterpret_cast<Set*>(at);
    }
    /// The two sets in which an entry may be.
    [[nodiscard]] std::array<Set*, 2> of(std::uint64_t hash) const {
      return {&sets[base::scale(hash, count)], &sets[base::scale(std::rotl(hash, 32), count)]};
    }
  };
  static std::uint64_t node_of(std::uint32_t map, wire::Lid lid) {
    return std::uint64_t{map} << 32 | lid;
  }

  ChunkTag* room_for(std::array<ChunkSet*, 2> sets, ChunkTag tag, std::byte*& bytes);
  [[nodiscard]] Place* find_place(std::uint64_t node) const;
  void took_room();

  std::optional<memory::AddressRange> memory_;
  Table<ChunkSet> chunks_;
  Table<PlaceSet> places_;
  base::Random random_{1};
  std::uint64_t used_ = 0;        // chunks stored in free entries
  std::uint64_t huge_bytes_ = 0;  // bytes converted to huge pages
};

}  // namespace espalier::place
