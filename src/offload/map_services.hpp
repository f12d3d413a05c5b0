// SPDX-License-Identifier: Apache-2.0
// What a node keeps for all its maps. Thread: any.
#pragma once

#include <atomic>
#include <cstdint>

#include "offload/index_reads.hpp"
#include "offload/node_parts.hpp"

namespace espalier::offload {

struct MapServices final : NodePart {
  IndexReadCounts index_reads;
  /// Jobs that free dropped maps (offload/free_dropped.hpp).
  std::atomic<std::uint32_t> freeing_jobs{0};
};

}  // namespace espalier::offload
