// SPDX-License-Identifier: Apache-2.0
// A simulated world in which clients walk a map by one-sided READs. Meanwhile its host writes the
// map, frees memory as early as allowed, and reuses it immediately; drops the map and makes another
// one in its memory; and crashes, and is replaced by another host without its state.
//
// The host is world_host.hpp, a client world_client.hpp, a device world_device.hpp. All requests
// and answers go into one history for each map, with the world's own order of time.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/types.hpp"
#include "fabric/sim/world.hpp"

namespace espalier::test {

/// How a node crashes.
enum class Death : std::uint8_t {
  none,
  node,     ///< its pairs fail, and what it had sent may or may not arrive
  process,  ///< it answers for no lease and writes nothing, but its memory still answers READs
};

struct OneSidedOptions {
  MapOptions map{.node_bytes = 512, .log_bytes = 128};
  fabric::sim::Faults faults{};
  std::uint32_t clients = 2;
  std::uint32_t keys = 60;
  std::string_view keys_begin_with = {};
  std::uint64_t reads = 400;       // of each client
  std::uint32_t value_bytes = 40;  // most are shorter
  std::uint64_t one_in_long = 6;   // of values is perhaps longer than a node holds,
  std::uint64_t long_bytes = 0;    // and at least so long
  bool erases = true;
  bool pauses = true;             // the host pauses, and leases are lost meanwhile
  std::uint32_t drops = 0;        // how often a map is dropped, and replaced
  bool keeps_leases = true;       // false: each is forgotten silently
  bool hints = true;              // half of the walks enter at a node of a cache, or anywhere
  bool only_scans = false;        // no other operations
  std::uint64_t cache_bytes = 0;  // of each client's cache of nodes, for one life of the host
  bool leaf_heads = true;         // and heads of leaves, as clients do and devices do not
  bool groups_gets = false;       // where READs keep their order
  bool follows_feed = false;      // which is sometimes interrupted
  bool lying_feed = false;        // and has entries that are entirely false
  bool forged_cache = false;      // whose entries are overwritten all the time
  std::uint32_t devices = 0;      // before the host, each with two clients of its own
  bool device_slow = false;       // turns are delayed, and take long
  bool device_stops = false;      // they are stopped for longer than leases last, now and then
  bool device_dies = false;       // the first of them, for good
  bool by_key = false;            // walks begin with a READ of their key, through world_switch.hpp
  /// READs also arrive between the steps of a write, in libraries with such moments: those with
  /// planted bugs.
  bool slow_writes = false;
  fabric::sim::Range write_every_ns{500, 15'000};
  Death death = Death::none;
  std::uint32_t deaths = 1;  // of hosts, in sequence
  bool comes_back = true;    // false: the last death is final
};

/// Counts of rare events.
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
  std::uint64_t messages_lost = 0;
  std::uint64_t round_trips = 0;
  std::uint64_t bytes = 0;
  std::uint64_t cache_descents = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t grouped_gets = 0;
  std::uint64_t leaves_ahead = 0;  // that scans came to
  std::uint64_t feed_changes = 0;
  std::uint64_t feed_replaced = 0;
  std::uint64_t feed_behind = 0;
  std::uint64_t feed_overruns = 0;       // by more entries than its ring holds
  std::uint64_t reads_redirected = 0;    // by the switch
  std::uint64_t reads_resolved = 0;      // by the host: no table matched
  std::uint64_t reads_at_nothing = 0;    // that a table had sent to where there is no node
  std::uint64_t redirect_keys_lost = 0;  // with leases of controllers
  std::uint64_t generations_begun = 0;   // of tables, by keys of their own
  std::uint64_t entries_followed = 0;    // of tables, where leaves had moved
  std::uint64_t entries_astray = 0;      // of these, those that named no node of that moment
  std::uint64_t controller_pauses = 0;   // while READs went on
  std::uint64_t device_answers = 0;      // of walks of its own
  std::uint64_t device_relayed = 0;      // requests relayed to the host
  std::uint64_t device_late_turns = 0;   // while requests were in flight
  std::uint64_t device_late_steps = 0;   // within turns
  std::uint64_t device_stops = 0;
  std::uint64_t device_stops_within = 0;  // in the middle of turns
  std::uint64_t device_leases_lost = 0;   // that the host would not renew
  std::uint64_t device_dials = 0;         // read connections that it made
  std::uint64_t device_answers_after_loss = 0;
  std::uint64_t device_answers_of_the_dead = 0;  // as answers_of_the_dead
  std::uint64_t device_engines = 0;              // that started again before another node
  std::uint64_t devices_dead = 0;
  std::uint64_t dead_devices_looked_at = 0;  // for the check that their leases had ended in time
  std::uint64_t maps = 0;
  std::uint64_t headers_reused = 0;  // maps whose header lies where an earlier one's lay
  std::uint64_t deaths = 0;
  std::uint64_t answers_of_the_dead = 0;    // given after the host was dead, from its memory
  std::uint64_t latest_of_the_dead_ns = 0;  // after its death
  std::uint64_t answers_of_successors = 0;  // from nodes that came after one
};

/// Runs the simulation. Returns what is wrong; empty: nothing.
[[nodiscard]] std::string run_one_sided(std::uint64_t seed, const OneSidedOptions& options,
                                        OneSidedCounts& counts);

}  // namespace espalier::test
