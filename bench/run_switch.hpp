// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch`: gets through a switch that knows the top of the map's tree, beside those
// that ask the node and those that walk the tree by READs, all through the same switch over memif
// [Fat-B+Tree §V-B].
//
//   rpc              the node is asked
//   one-sided        the client walks by READs, and remembers nothing but the page table
//   one-sided-cache  and remembers interior nodes and heads of leaves
//   in-network       READs that carry the key, which the switch redirects
//   in-network-writes  the same, while so many of 100 requests are writes (--writes), beside which
//                    tables age until the controller looks again (--delay)
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "bench/output.hpp"

namespace espalier::bench {

struct SwitchRunOptions {
  std::string node_address;     ///< where clients come to a switch that runs; empty: all of our own
  std::string map = "default";  ///< there, which has the keys
  std::uint64_t keys = 200'000;
  std::uint64_t value_bytes = 100;
  std::uint32_t node_bytes = 4096;
  std::uint64_t ops = 20'000;  ///< of each way in each round
  std::uint32_t in_flight = 16;
  std::uint32_t rounds = 5;  ///< in which the ways take turns
  std::uint64_t ranges = 600;
  std::uint64_t sets = 3;
  std::uint64_t nodes_per_set = 3600;
  std::uint32_t write_percent = 0;  ///< of the requests of a way of its own; 0: there is none
  std::uint32_t delay_ms = 10;      ///< of our own controller, between two looks at what has moved
  std::uint64_t seed = 1;
  bool json = false;
};

/// What is wrong with the options, in one sentence; nothing if all is well.
std::optional<std::string> problem_of(const SwitchRunOptions& options);

/// Returns what main should. Errors: throws std::runtime_error or std::bad_alloc.
int run_switch(const SwitchRunOptions& options, const Output& output);

}  // namespace espalier::bench
