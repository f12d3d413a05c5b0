// SPDX-License-Identifier: Apache-2.0
// Memory that a node lets one session WRITE, and the session's messages about it.
// docs/formats/landing.md draws it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace espalier::wire {

/// Windows of one session at a time.
inline constexpr std::uint32_t kLandingWindowsMax = 16;

/// The answer to landing_open: where this session may write.
struct LandingGrant {
  std::uint64_t window;  // its number; never 0
  std::uint64_t base;    // the address of its first byte
  std::uint64_t bytes;
  std::uint32_t key;
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(LandingGrant) == 32 && std::has_unique_object_representations_v<LandingGrant>);

/// The payload of table_commit: whole rows that lie in a window.
struct LandedRows {
  std::uint64_t window;
  std::uint64_t offset;  // in it; a multiple of 8
  std::uint64_t bytes;
};
static_assert(sizeof(LandedRows) == 24 && std::has_unique_object_representations_v<LandedRows>);

}  // namespace espalier::wire
