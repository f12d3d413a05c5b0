// SPDX-License-Identifier: Apache-2.0
// What a walker from elsewhere remembers of a node's memory: pieces of interior nodes, and where
// nodes were. All of it is hints: it says where a walk enters the tree, and never what it answers
// (DESIGN idea 1).
//
//   chunks   256 bytes each, by reference (buffer and generation) and number: a node that moved has
//            another reference, so that a copy is never taken for what the node is now
//   places   of nodes: by map and LID, the reference that the page table had
//
// Both are tables of sets of four. Each entry has two sets in which it may be, and is put into the
// second where the first is full; of the eight that are there, a random one makes room. (With one
// set alone, a fourteenth of the entries has no room in a table that is three fifths full.) What is
// kept of a node, and when, its users decide (kinds/map/remote/map_cache.hpp); the maps of one
// store may share a cache.
//
// The memory is asked for as a whole and taken by the system page by page, as it is used; when most
// of its pages are, they are made huge ones, one after the other. Where there is none, a cache
// keeps nothing.
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

  /// `bytes`: of all that it keeps, at most.
  explicit NodeCache(std::uint64_t bytes) noexcept;
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  /// A chunk of a node, kChunkBytes of it; null: it is not here. Good until something is kept.
  [[nodiscard]] const std::byte* find(wire::Ref ref, std::uint32_t chunk) const;
  /// Asks for what find() looks at, but for the chunk itself, and for what place() looks at.
  void prefetch_tags(wire::Ref ref, std::uint32_t chunk) const;
  void prefetch_place(std::uint32_t map, wire::Lid lid) const;
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
  friend class NodeCacheForger;  // kinds/map/remote/testing/node_cache_forger.hpp

  struct ChunkTag {
    std::uint64_t ref = 0;  // 0: nothing is here
    std::uint64_t chunk = 0;
    friend bool operator==(const ChunkTag&, const ChunkTag&) = default;
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
  /// Sets that are all zeros at first.
  template <class Set>
  struct Table {
    Set* sets = nullptr;
    std::uint64_t count = 0;
    /// Takes as many as these bytes hold, for good.
    void make(std::byte* at, std::uint64_t bytes) {
      count = bytes / sizeof(Set);
      sets = reinterpret_cast<Set*>(at);
    }
    /// The two in which an entry may be.
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
  std::uint64_t used_ = 0;        // chunks that were put where none was
  std::uint64_t huge_bytes_ = 0;  // of the memory, what was made huge pages
};

}  // namespace espalier::place
