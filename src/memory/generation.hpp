// SPDX-License-Identifier: Apache-2.0
// Generations of buffers: 32-bit numbers that wrap around, of which references carry 28 bits.
#pragma once

#include <cstdint>

#include "wire/ref.hpp"

namespace espalier::memory {

/// The generation after this one; its low 28 bits are never 0.
constexpr std::uint32_t next_generation(std::uint32_t generation) {
  const std::uint32_t next = generation + 1;
  return (next & wire::kGenerationMask) == 0 ? next + 1 : next;
}

}  // namespace espalier::memory
