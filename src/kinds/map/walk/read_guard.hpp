// SPDX-License-Identifier: Apache-2.0
// What keeps the memory that walks read from being used again meanwhile (DESIGN §2.1 rules 2, 4).
//
// A guard serves the walks of one core. Beside the memory it is an epoch (tree/host); elsewhere a
// lease. A walk begins (`begin`), is then given its read version, reads, has what it read confirmed
// (Access::confirm), and ends (`end`). Between, nothing that it can reach by that version is used
// again.
#pragma once

#include <concepts>
#include <cstdint>

namespace espalier::tree {

/// A guard gives:
///   stale()     requests arrived: what was read before them is too old for them
///   begin()     a walk begins; returns its tick, for end()
///   end(tick)   it has ended
///   idle()      nothing is in flight any more
template <class G>
concept ReadGuard = requires(G guard, std::uint32_t tick) {
  guard.stale();
  { guard.begin() } -> std::same_as<std::uint32_t>;
  guard.end(tick);
  guard.idle();
};

/// A guard at whose memory's side the walk runs, so that the read version is at hand when a walk
/// begins. With others it is read with the map's header, after begin().
template <class G>
concept LocalReadGuard = ReadGuard<G> && requires(const G guard) {
  { guard.version() } -> std::same_as<std::uint64_t>;
};

}  // namespace espalier::tree
