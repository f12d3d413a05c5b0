// SPDX-License-Identifier: Apache-2.0
// ReadGuard: keeps memory that walks read from being reused meanwhile (DESIGN §2.1 rules 2, 4).
//
// A guard serves the walks of one core: beside the memory it is an epoch (kinds/map/host), for
// remote readers a lease. A walk begins (`begin`), obtains its read version, reads, confirms what
// it read (Access::confirm), and ends (`end`). In between, no memory reachable at that version is
// reused.
#pragma once

#include <concepts>
#include <cstdint>

namespace espalier::tree {

/// A guard provides:
///   stale()     new requests arrived: a read version taken before is too old for them
///   begin()     begins a walk; returns its tick, for end()
///   end(tick)   ends it
///   idle()      no walk is in flight
template <class G>
concept ReadGuard = requires(G guard, std::uint32_t tick) {
  guard.stale();
  { guard.begin() } -> std::same_as<std::uint32_t>;
  guard.end(tick);
  guard.idle();
};

/// A guard beside the memory, where the read version is at hand when a walk begins. With other
/// guards it is read with the map's header, after begin().
template <class G>
concept LocalReadGuard = ReadGuard<G> && requires(const G guard) {
  { guard.version() } -> std::same_as<std::uint64_t>;
};

}  // namespace espalier::tree
