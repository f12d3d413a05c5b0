// SPDX-License-Identifier: Apache-2.0
// What a walker from elsewhere remembers of a node's memory: pieces of interior nodes, and where
// nodes were. All of it is hints: it says where a walk enters the tree, and never what it answers
// (DESIGN idea 1).
//
//   chunks   256 bytes each, by reference (buffer and generation) and number: a node that moved has
//            another reference, so that a copy is never taken for what the node is now
//   places   of nodes: by map and LID, the reference that the page table had
//
// Both are tables of sets of four, of which a random one makes room. What is kept of a node, and
// when, its users decide (place/map_cache.hpp); the maps of one store may share a cache.
//
// The memory is asked for as a whole and taken by the system page by page, as it is used. Where
// there is none, a cache keeps nothing.
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/random.hpp"
#include "wire/node.hpp"

namespace espalier::place {

class NodeCache {
 public:
  static constexpr std::uint32_t kChunkBytes = 256;
  static constexpr std::uint32_t kWays = 4;

  /// `bytes`: of all that it keeps, at most.
  explicit NodeCache(std::uint64_t bytes) noexcept;
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  /// A chunk of a node, kChunkBytes of it; null: it is not here. Good until something is kept.
  [[nodiscard]] const std::byte* find(wire::Ref ref, std::uint32_t chunk) const;
  /// Keeps a chunk, at most kChunkBytes; what is missing reads as zeros.
  void keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes);
  /// Where a node was last seen; none: not known.
  [[nodiscard]] wire::Ref place(std::uint32_t map, wire::Lid lid) const;
  void keep_place(std::uint32_t map, wire::Lid lid, wire::Ref ref);
  /// Forgets a chunk, if it is here.
  void forget(wire::Ref ref, std::uint32_t chunk);
  /// Sets where a node is now, if it was known where it was; none: that is forgotten. Returns where
  /// it was.
  wire::Ref move_place(std::uint32_t map, wire::Lid lid, wire::Ref ref);
  /// Forgets where nodes of this map are. Cost: linear in what all places take.
  void forget_places(std::uint32_t map);

  /// What its tables take.
  [[nodiscard]] std::uint64_t bytes() const {
    return chunks_.count * sizeof(ChunkSet) + places_.count * sizeof(PlaceSet);
  }

 private:
  friend class NodeCacheForger;  // place/testing/node_cache_forger.hpp

  struct ChunkTag {
    std::uint64_t ref = 0;  // 0: nothing is here
    std::uint64_t chunk = 0;
  };
  struct ChunkSet {
    std::array<ChunkTag, kWays> tags;
    std::byte bytes[kWays][kChunkBytes];
  };
  struct Place {
    std::uint64_t node = 0;  // map above, LID below; 0: nothing is here
    std::uint64_t ref = 0;
  };
  struct PlaceSet {
    std::array<Place, kWays> ways;
  };
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  /// Sets that are all zeros at first.
  template <class Set>
  struct Table {
    std::unique_ptr<Set[], Free> sets;
    std::uint64_t count = 0;
    void make(std::uint64_t bytes) noexcept {
      const std::uint64_t wanted = bytes / sizeof(Set);
      if (wanted == 0) return;
      sets.reset(static_cast<Set*>(std::calloc(wanted, sizeof(Set))));
      count = sets ? wanted : 0;
    }
    [[nodiscard]] Set& of(std::uint64_t hash) const { return sets[base::scale(hash, count)]; }
  };
  static std::uint64_t node_of(std::uint32_t map, wire::Lid lid) {
    return std::uint64_t{map} << 32 | lid;
  }

  Table<ChunkSet> chunks_;
  Table<PlaceSet> places_;
  base::Random random_{1};
};

}  // namespace espalier::place
