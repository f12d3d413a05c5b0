// SPDX-License-Identifier: Apache-2.0
// Limits of items, whatever stores them: a client refuses what a message cannot express.
#pragma once

#include <cstdint>

namespace espalier::wire {

inline constexpr std::uint32_t kValueBytesMax = 16u << 20;

}  // namespace espalier::wire
