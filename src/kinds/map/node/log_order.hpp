// SPDX-License-Identifier: Apache-2.0
// Computes the order of log entries by key from their order hints: the hint of an entry is its rank
// among earlier entries [Honeycomb §4.3]. Compares no key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kinds/map/format/node.hpp"

namespace espalier::tree {

/// Fills in `order[i]`, the slot of the i-th smallest entry. Hints may be arbitrary bytes.
/// Requires: order has kLogSlotsMax places.
template <class HintOf>
inline void sort_by_hints(std::uint32_t entries, const HintOf& hint_of, std::uint8_t* order) {
  // Most logs have so few entries that their order fits one word, a byte each.
  const std::uint32_t in_word = std::min(entries, 8u);
  std::uint64_t word = 0;
  for (std::uint32_t i = 0; i < in_word; ++i) {
    const std::uint32_t bits = 8 * std::min<std::uint32_t>(hint_of(i), i);
    const std::uint64_t below = (std::uint64_t{1} << bits) - 1;
    word = (word & below) | (word & ~below) << 8 | std::uint64_t{i} << bits;
  }
  for (std::uint32_t i = 0; i < in_word; ++i) order[i] = static_cast<std::uint8_t>(word >> 8 * i);
  for (std::uint32_t i = in_word; i < entries; ++i) {
    const std::uint32_t hint = std::min<std::uint32_t>(hint_of(i), i);
    std::memmove(order + hint + 1, order + hint, i - hint);
    order[hint] = static_cast<std::uint8_t>(i);
  }
}

}  // namespace espalier::tree
