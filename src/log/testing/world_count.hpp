// SPDX-License-Identifier: Apache-2.0
// How many worlds a test lives through: its own number, ESPALIER_SEEDS, or a share of the first by
// ESPALIER_FEW_SEEDS (docs/testing.md).
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace espalier::log {

[[nodiscard]] inline std::uint64_t world_count(std::uint64_t usually) {
  if (const char* const text = std::getenv("ESPALIER_SEEDS")) {
    return std::strtoull(text, nullptr, 0);
  }
  const char* const few = std::getenv("ESPALIER_FEW_SEEDS");
  if (few == nullptr) return usually;
  const std::uint64_t share = std::max<std::uint64_t>(std::strtoull(few, nullptr, 0), 1);
  return std::max<std::uint64_t>(usually / share, 1);
}

}  // namespace espalier::log
