// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/leaf_window.hpp"

#include <algorithm>

namespace espalier::tree {
namespace {

// Begin of the last chunk at or below `chunk` that has an item. Chunks wholly inside an item have
// none.
std::uint32_t start_at_or_below(const NodeView& leaf, std::uint32_t chunk) {
  while (chunk != 0 && leaf.chunk_start(chunk) == 0) --chunk;
  return std::max(leaf.geometry().sorted_begin, leaf.chunk_start(chunk));
}

// Rounds up to the begin of a chunk.
std::uint32_t cut_up(const NodeView& leaf, std::uint64_t offset) {
  const std::uint32_t begin = leaf.geometry().sorted_begin;
  const std::uint32_t end = leaf.sorted_end();
  if (offset <= begin) return begin;
  if (offset >= end) return end;
  const auto last = static_cast<std::uint32_t>(offset) - 1 - begin;
  return leaf.chunk_end(last >> leaf.geometry().chunk_shift);
}

// Rounds down to the begin of a chunk.
std::uint32_t cut_down(const NodeView& leaf, std::uint32_t offset) {
  const std::uint32_t begin = leaf.geometry().sorted_begin;
  if (offset <= begin) return begin;
  std::uint32_t chunk = (offset - begin) >> leaf.geometry().chunk_shift;
  if (chunk >= leaf.chunks()) return begin;  // a corrupt leaf
  while (chunk != 0 && start_at_or_below(leaf, chunk) > offset) --chunk;
  return std::min(offset, start_at_or_below(leaf, chunk));
}

}  // namespace

LeafWindow chunks_of(const NodeView& leaf, const SearchKit& kit, const SearchKey& key) {
  const LeafProbe probe = probe_leaf(leaf, key, kit);
  if (probe.rank.below_or_equal == 0) return {probe.begin, probe.end};
  // If chunks begin with the key's own prefix, the chunk before them may have it too.
  const std::uint32_t first = probe.rank.below == 0 ? 0 : probe.rank.below - 1;
  return {std::min(start_at_or_below(leaf, first), probe.end), probe.end};
}

LeafWindow window_above(const NodeView& leaf, const SearchKit& kit, const SearchKey* low,
                        const SearchKey* high, std::uint64_t bytes) {
  const std::uint32_t first = leaf.geometry().sorted_begin;
  const LeafWindow near = low != nullptr ? chunks_of(leaf, kit, *low) : LeafWindow{first, first};
  std::uint32_t end = cut_up(leaf, near.begin + bytes);
  if (high != nullptr) end = std::min(end, chunks_of(leaf, kit, *high).end);
  return {near.begin, std::max(near.end, end)};
}

LeafWindow window_below(const NodeView& leaf, const SearchKit& kit, const SearchKey* low,
                        const SearchKey* high, std::uint64_t bytes) {
  const std::uint32_t last = leaf.sorted_end();
  const LeafWindow near = high != nullptr ? chunks_of(leaf, kit, *high) : LeafWindow{last, last};
  const std::uint32_t room = near.end - leaf.geometry().sorted_begin;
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, room));
  std::uint32_t begin = cut_down(leaf, near.end - most);
  if (low != nullptr) begin = std::max(begin, chunks_of(leaf, kit, *low).begin);
  return {std::min(near.begin, begin), near.end};
}

LeafWindow widened(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                   const SearchKey* bound) {
  if (bound == nullptr) return window;
  const LeafWindow chunks = chunks_of(leaf, kit, *bound);
  if (chunks.begin >= window.end || chunks.end <= window.begin) return window;
  return {std::min(window.begin, chunks.begin), std::max(window.end, chunks.end)};
}

LeafWindow rest_above(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                      const SearchKey* high) {
  return {window.end, high != nullptr ? chunks_of(leaf, kit, *high).end : leaf.sorted_end()};
}

LeafWindow rest_below(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                      const SearchKey* low) {
  return {low != nullptr ? chunks_of(leaf, kit, *low).begin : leaf.geometry().sorted_begin,
          window.begin};
}

}  // namespace espalier::tree
