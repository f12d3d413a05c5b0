// SPDX-License-Identifier: Apache-2.0
// All that a walk knows of a map before it begins: who the map is, how its nodes are laid out, and
// where its page table lies. Nothing of it changes while the map lives.
//
// A view is made from the map's header: in place by its host, or from one READ by a client. Who
// writes the map, reclaims its memory or runs the walk, a view does not know (DESIGN §2.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic_bytes.hpp"
#include "espalier/error.hpp"
#include "kinds/map/format/map_header.hpp"
#include "kinds/map/node/geometry.hpp"
#include "kinds/map/node/node_view.hpp"

namespace espalier::tree {

struct MapView {
  /// Reads a view from a copy of the map's header, which came from `header_offset` of a region of
  /// `region_bytes`. `memory`: the region's bytes where they are at hand, else null.
  /// Every field is checked; the bytes may come from anywhere.
  /// Errors: corrupt (detail: 1 no map header, 2 dropped or not live, 3 node geometry, 4 page table
  /// or root outside the region, 5 its clock outside it); unsupported (detail: the format of the
  /// map, of another program).
  [[nodiscard]] static Result<MapView> read(const wire::MapHeader& header,
                                            std::uint64_t header_offset, std::uint64_t region_bytes,
                                            const std::byte* memory);

  /// Whether it shares its clock with others, so that the word is not in its header.
  [[nodiscard]] bool shares_clock() const {
    return clock_offset != header_offset + offsetof(wire::MapHeader, read_version);
  }
  /// Whether the map with this header is still the one of this view, and not dropped.
  [[nodiscard]] bool same_map(std::uint32_t map_id, std::uint32_t generation,
                              std::uint64_t superseded) const {
    return map_id == id && generation == header_generation && superseded == wire::kLive;
  }

  // --- where the bytes are at hand ---------------------------------------------------------------
  [[nodiscard]] const std::byte* at(std::uint64_t offset) const { return memory + offset; }
  [[nodiscard]] NodeView view(wire::Ref ref) const { return {at(ref.offset()), geometry}; }
  /// Where the entry of `lid` lies, from the region's base; 0 if there is none.
  [[nodiscard]] std::uint64_t entry_offset(wire::Lid lid) const {
    const std::uint64_t named = directory_entry_offset(lid);
    if (named == 0) return 0;
    const auto page = base::load_shared<std::uint64_t>(at(named), std::memory_order_acquire);
    return page == 0 ? 0 : entry_in_page(page, lid);
  }
  [[nodiscard]] wire::Ref ref_at(std::uint64_t entry) const {
    return {base::load_shared<std::uint64_t>(at(entry), std::memory_order_acquire)};
  }
  [[nodiscard]] wire::Ref ref(wire::Lid lid) const {
    const std::uint64_t entry = entry_offset(lid);
    return entry == 0 ? wire::Ref{} : ref_at(entry);
  }
  [[nodiscard]] wire::Ref root_ref() const { return ref(root); }

  // --- for walkers that have each word brought to them -------------------------------------------
  /// Where the directory names the table page of `lid`; 0: nowhere.
  [[nodiscard]] std::uint64_t directory_entry_offset(wire::Lid lid) const {
    const std::uint32_t page = lid >> wire::kTablePageShift;
    return page >= wire::kDirectoryEntries || page < wire::kHeaderWords
               ? 0
               : directory_offset + std::uint64_t{8} * page;
  }
  [[nodiscard]] static std::uint64_t entry_in_page(std::uint64_t page_offset, wire::Lid lid) {
    return page_offset + std::uint64_t{8} * (lid % wire::kTablePageEntries);
  }
  /// Whether so many bytes from this offset lie in the region.
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= region_bytes && bytes <= region_bytes - offset;
  }
  [[nodiscard]] bool holds_node(wire::Ref ref) const {
    return holds(ref.offset(), geometry.node_bytes);
  }

  const std::byte* memory = nullptr;  // the region's bytes; null: elsewhere
  std::uint64_t region_bytes = 0;
  std::uint32_t id = 0;
  std::uint32_t header_generation = 0;
  std::uint64_t header_offset = 0;
  std::uint64_t directory_offset = 0;
  std::uint64_t clock_offset = 0;  // of the word of its read version
  wire::Lid root = 0;
  bool versions = true;
  Geometry geometry;
  const SearchKit& kit = best_search_kit();
};

}  // namespace espalier::tree
