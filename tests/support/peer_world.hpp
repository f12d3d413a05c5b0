// SPDX-License-Identifier: Apache-2.0
// A simulated world of nodes with peer links to each other. Requests of their clients read, write
// and add to the peers' regions and call the peers, whose calls do so in their turn, while nodes
// crash and restart, links are cut, and processes pause, at random moments. The code is that of
// nodes; threads that open links are events of the world.
//
// Invariants
// - Each request is answered once, and soon, if its node lives; so there are no deadlocks.
// - What completed as done took effect, once. What was not sent, or refused, had no effect. Of
//   unknown completions a WRITE took effect in part at most, an atomic once at most.
// - WRITEs and atomics of one link take effect in order.
// - After a key is revoked, a region dropped, or a later session begun, nothing changes by it.
// - In the end no place, share or key is taken, and no session is left but those of the links; and
//   when there are no more faults, all posts complete as done.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/peer_history.hpp"
#include "wire/ring_link.hpp"

namespace espalier::test {

struct PeerWorldOptions {
  std::uint32_t nodes = 3;
  std::uint32_t requests = 40;  ///< of each client
  wire::LinkWay way = wire::LinkWay::write;
  bool crashes = true;
  bool cuts = true;
  bool pauses = true;
  bool drops = true;     ///< of regions, and replaced keys of existing ones
  bool refusals = true;  ///< of pairs for memory
  bool gone_clients = true;
  std::uint32_t window = 12;  ///< requests in flight of one client
  std::uint32_t posts = 4;    ///< of a step, most times
  double calls = 0.2;         ///< of these
};

/// Runs the simulation. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string run_peer_world(std::uint64_t seed, const PeerWorldOptions& options,
                                         PeerReached& reached);

}  // namespace espalier::test
