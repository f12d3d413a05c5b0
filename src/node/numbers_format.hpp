// SPDX-License-Identifier: Apache-2.0
// The node's counters as bytes, for clients of a ring: wire/node_numbers.hpp draws them. They are
// the contents of metrics_text().
//
// Thread: any.
#pragma once

#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "node/metrics.hpp"

namespace espalier::node {

/// Cost: linear; 456 bytes for each offload with requests, and each number as a sample
/// (wire/samples.hpp).
[[nodiscard]] std::string encode(const NodeNumbers& numbers);

/// Parses the output of encode(), from any source: any bytes are read safely, with memory
/// proportional to theirs. Offloads unknown to this build are called "unknown".
/// Errors: corrupt (the length does not match the contents).
[[nodiscard]] Result<NodeNumbers> decode(std::string_view bytes);

}  // namespace espalier::node
