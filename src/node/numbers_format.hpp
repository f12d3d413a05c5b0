// SPDX-License-Identifier: Apache-2.0
// The numbers of a node as bytes, for those who ask it through a ring: wire/node_numbers.hpp draws
// them. What is written here is what metrics_text() tells.
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "node/metrics.hpp"

namespace espalier::node {

/// Cost: linear; 456 bytes for each offload of which something was asked, and each number as a
/// sample (wire/samples.hpp).
[[nodiscard]] std::string encode(const NodeNumbers& numbers);

/// Reads what encode() wrote, wherever it comes from: any bytes are read safely, and take no more
/// memory than some times their own. Offloads that this build does not know are called "unknown".
/// Errors: corrupt (they are too short or too long for what they say).
[[nodiscard]] Result<NodeNumbers> decode(std::string_view bytes);

}  // namespace espalier::node
