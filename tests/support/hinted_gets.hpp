// SPDX-License-Identifier: Apache-2.0
// Gets in datagrams to two nodes, through a switch that tells them where to begin: of a map with
// the same number at both, by tables that become old, and now and then by those of the other node.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

namespace espalier::test {

/// What became of hints, at both nodes, and of gets.
struct HintedGetsCounts {
  std::uint64_t hinted = 0;    ///< gets that the switch has told a node
  std::uint64_t admitted = 0;  ///< hints that named a node as it was
  std::uint64_t moved = 0;
  std::uint64_t refused = 0;
  std::uint64_t of_another = 0;  ///< gets that went by tables of the other node
  std::uint64_t found = 0;
  std::uint64_t absent = 0;
};

/// Returns what is wrong; empty: each get was answered with what its item was.
[[nodiscard]] std::string hinted_gets(std::uint64_t seed, int gets, HintedGetsCounts& counts);

}  // namespace espalier::test
