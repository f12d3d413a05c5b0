// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace espalier::channel {

/// The number of a node, which it draws when it starts.
using NodeNumber = std::uint64_t;

}  // namespace espalier::channel
