// SPDX-License-Identifier: Apache-2.0
// Computes which bytes of a leaf's sorted block a scan needs, for readers that fetch parts of
// leaves: whole chunks, chosen from the leaf's head alone.
//
// A scan of few items fetches the chunks of its first key and of its probable end; if they do not
// suffice, the rest follows. The log is needed whole.
#pragma once

#include <cstdint>

#include "kinds/map/node/leaf_search.hpp"

namespace espalier::tree {

/// Sorted items [begin, end), offsets in the leaf, at chunk boundaries. A window has the log
/// entries placed in [begin, end), and those at `end` if nothing follows: otherwise they belong to
/// the next window up.
struct LeafWindow {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] bool empty() const { return begin >= end; }
  bool operator==(const LeafWindow&) const = default;
};

/// The chunks that decide where a key is. If several begin with its key prefix, all of them; empty,
/// at the first item, if the key lies before it.
/// Requires, like all here: the leaf's head (header, slots, key prefixes, starts) is at hand.
[[nodiscard]] LeafWindow chunks_of(const NodeView& leaf, const SearchKit& kit,
                                   const SearchKey& key);

/// What an ascending scan of about `bytes` bytes of items needs, from `low` on, or from the leaf's
/// first item. It ends with the chunks of `high`, if given.
/// Requires: the leaf covers `high`.
[[nodiscard]] LeafWindow window_above(const NodeView& leaf, const SearchKit& kit,
                                      const SearchKey* low, const SearchKey* high,
                                      std::uint64_t bytes);

/// The same for a descending scan, from below `high`, or from the leaf's last item.
/// Requires: the leaf covers `low`, if that is given.
[[nodiscard]] LeafWindow window_below(const NodeView& leaf, const SearchKit& kit,
                                      const SearchKey* low, const SearchKey* high,
                                      std::uint64_t bytes);

/// The window extended to all chunks of a bound if it has some. Requires: the leaf covers the
/// bound.
[[nodiscard]] LeafWindow widened(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                                 const SearchKey* bound);

/// The window above this one, up to the chunks of `high` or to the leaf's last item.
[[nodiscard]] LeafWindow rest_above(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                                    const SearchKey* high);
/// The window below this one, down to the chunks of `low` or to the leaf's first item.
[[nodiscard]] LeafWindow rest_below(const NodeView& leaf, const SearchKit& kit, LeafWindow window,
                                    const SearchKey* low);

}  // namespace espalier::tree
