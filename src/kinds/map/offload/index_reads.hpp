// SPDX-License-Identifier: Apache-2.0
// Counts of READs by shared region keys at a node (map_reads.hpp): shows how good the tables in
// switches are.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::offload {

struct IndexReadCounts {
  std::atomic<std::uint64_t> resolved{0};  // matched no table: the node descended itself
  std::atomic<std::uint64_t> leaves{0};    // redirected by a table to a leaf
  std::atomic<std::uint64_t> interior{0};  // redirected to an interior node
  std::atomic<std::uint64_t> nothing{0};   // redirected to where the map has no node any more
  std::atomic<std::uint64_t> followed{0};  // of leaves and interior: answered with a successor
};

}  // namespace espalier::offload
