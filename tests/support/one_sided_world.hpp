// SPDX-License-Identifier: Apache-2.0
// A simulated world in which clients walk a map alone, by one-sided READs, while its host writes
// it, gives memory back as soon as it may, and uses it again at once.
//
// The host knows each client by its session: a registration of the store's region in a domain of
// its own, and a lease. It sweeps leases, and fences a session before it ends its lease. A client
// whose queue pair fails, or whose lease is lost, comes again with a new session. What is asked and
// answered of both sides goes into one history, with the world's own order of time.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/sim/world.hpp"
#include "tests/support/history.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {

struct OneSidedOptions {
  MapOptions map{.node_bytes = 512, .log_bytes = 128};
  fabric::sim::Faults faults{};
  std::uint32_t clients = 2;
  std::uint32_t keys = 60;
  std::uint64_t reads = 400;       // of each client
  std::uint32_t value_bytes = 40;  // most are shorter
  std::uint64_t one_in_long = 6;   // of values is perhaps longer than a node holds,
  std::uint64_t long_bytes = 0;    // and at least so long
  bool erases = true;
  bool pauses = true;        // the host does nothing for a while, leases are lost meanwhile
  bool drop = false;         // the map is dropped in the middle
  bool keeps_leases = true;  // else each is forgotten at once, and its reader is not told
  bool hints = true;         // half of the walks enter at a node of a cache, or anywhere
};

/// How often the rare was reached.
struct OneSidedCounts {
  std::uint64_t answers = 0;
  std::uint64_t refused = 0;
  std::uint64_t restarts = 0;  // of walks
  std::uint64_t met_changes = 0;
  std::uint64_t sessions = 0;
  std::uint64_t leases_lost = 0;
  std::uint64_t long_values = 0;  // read
  std::uint64_t torn_reads = 0;
  std::uint64_t reads_reordered = 0;
  std::uint64_t round_trips = 0;
  std::uint64_t bytes = 0;
};

/// Lets all of it happen. Returns what is wrong; empty if nothing is.
[[nodiscard]] std::string run_one_sided(std::uint64_t seed, const OneSidedOptions& options,
                                        OneSidedCounts& counts);

}  // namespace espalier::test
