// SPDX-License-Identifier: Apache-2.0
// Gets in datagrams to two nodes, through a switch that adds hints: for a map with the same number
// at both, from tables that become stale, and sometimes from those of the other node.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::test {

/// Counts of hints, at both nodes, and of gets.
struct HintedGetsCounts {
  std::uint64_t hinted = 0;    ///< gets to which the switch added a hint
  std::uint64_t admitted = 0;  ///< hints that named a current node
  std::uint64_t moved = 0;
  std::uint64_t refused = 0;
  std::uint64_t of_another = 0;  ///< gets that used tables of the other node
  std::uint64_t found = 0;
  std::uint64_t absent = 0;
};

/// Returns what is wrong; empty: each answer was the item's value at some moment of its get.
[[nodiscard]] std::string hinted_gets(std::uint64_t seed, int gets, HintedGetsCounts& counts);

}  // namespace espalier::test
