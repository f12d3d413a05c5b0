// SPDX-License-Identifier: Apache-2.0
// What READs by keys that sessions share have met at a node (map_reads.hpp): how good tables in
// switches are, as the memory sees it.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::offload {

struct IndexReadCounts {
  std::atomic<std::uint64_t> resolved{0};  // no table had met them: the node went down by itself
  std::atomic<std::uint64_t> leaves{0};    // a table had sent them to a leaf
  std::atomic<std::uint64_t> interior{0};  // or to a node above leaves
  std::atomic<std::uint64_t> nothing{0};   // or where no node of the map is any more
  std::atomic<std::uint64_t> followed{0};  // of leaves and interior: what had replaced it came
};

}  // namespace espalier::offload
