// SPDX-License-Identifier: Apache-2.0
// By what the ICRCs of READ requests change when their addresses do (fabric/roce/icrc.hpp), for a
// burst of them: by products without carry of eight at a time, where the processor has those, else
// by tables.
//
// Thread: pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace espalier::dataplane {

/// As many as are looked up together.
inline constexpr std::size_t kIcrcsTogether = 32;

/// The old address xor the new one of each, and what comes of it.
struct IcrcChanges {
  std::array<std::uint64_t, kIcrcsTogether> addresses;
  std::array<std::uint32_t, kIcrcsTogether> icrcs;
};

/// fabric::roce::icrc_change_of_address() of the first `count`; of those behind them something, or
/// nothing. Requires: count <= kIcrcsTogether, all addresses set.
/// Cost: half of what that costs each.
void find_icrc_changes(IcrcChanges& changes, std::size_t count);
/// The form that works everywhere.
void find_icrc_changes_by_table(IcrcChanges& changes, std::size_t count);

}  // namespace espalier::dataplane
