// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier::channel {

/// The number of a node, random at each start.
using NodeNumber = std::uint64_t;

}  // namespace espalier::channel
