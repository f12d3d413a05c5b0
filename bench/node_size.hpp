// SPDX-License-Identifier: Apache-2.0
// Sizes of nodes that a benchmark accepts.
#pragma once

#include <bit>
#include <cstdint>

#include "kinds/map/format/node.hpp"

namespace espalier::bench {

[[nodiscard]] constexpr bool is_node_size(std::uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= wire::kNodeBytesMin && bytes <= wire::kNodeBytesMax;
}
inline constexpr const char* kNoNodeSize = "--node-bytes must be a power of two from 512 to 65536";

}  // namespace espalier::bench
