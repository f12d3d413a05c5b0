// SPDX-License-Identifier: Apache-2.0
// What items may be, whatever keeps them: what a message cannot even say is refused by who would
// send it.
#pragma once

#include <cstdint>

namespace espalier::wire {

inline constexpr std::uint32_t kValueBytesMax = 16u << 20;

}  // namespace espalier::wire
