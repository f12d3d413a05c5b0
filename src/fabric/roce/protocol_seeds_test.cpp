// SPDX-License-Identifier: Apache-2.0
// The engine of `roce` does everything once and in order, whatever the network does: random work
// over bad networks, one seed after another, and all that seldom happens was seen to happen.
//
// 100 seeds; ESPALIER_SEEDS says how many instead (docs/testing.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "fabric/roce/testing/protocol_world.hpp"

namespace espalier::fabric::roce::workload {
namespace {

/// What seldom happens, and how often it has.
std::vector<std::pair<const char*, std::uint64_t>> rare_of(const Reached& reached) {
  const EndpointCounters& engine = reached.engine;
  return {
      {"packets lost", reached.network.lost},
      {"packets duplicated", reached.network.duplicated},
      {"packets damaged", reached.network.damaged},
      {"packets overtaken", reached.network.overtaken},
      {"gone back", engine.go_back_n_events},
      {"timeouts", engine.timeouts},
      {"gaps found", engine.gaps},
      {"gaps told", engine.sequence_naks},
      {"receives missing", engine.not_ready},
      {"receives told missing", engine.receiver_not_ready_naks},
      {"READs resumed", engine.reads_resumed},
      {"port full", engine.port_full},
      {"WRITEs and SENDs again", engine.duplicates},
      {"READs again", engine.reads_again},
      {"atomics again", engine.atomics_again},
      {"REQs again", engine.requests_again},
      {"REPs again", engine.replies_again},
      {"DREQs again", engine.repeated_terminates},
      {"fences", reached.fences},
      {"PSNs gone round", reached.wraps},
  };
}

void expect_all_reached(const base::Seeds& seeds, const Reached& reached) {
  for (const auto& [what, count] : rare_of(reached)) {
    EXPECT_GT(count, 0u) << what;
    ::testing::Test::RecordProperty(what, std::to_string(count));
    seeds.report(what, count);
  }
}

TEST(RoceSeeds, NothingIsLostOrRepeatedWhateverTheNetworkDoes) {
  const std::uint64_t first = base::seed_from_environment(1000);
  base::Seeds seeds(100);
  Reached reached;
  const auto all_happened = [&] {
    return std::ranges::all_of(rare_of(reached), [](const auto& one) { return one.second != 0; });
  };
  for (; seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    ASSERT_EQ(World(seed, {}).run(reached), "") << "seed " << seed;
  }
  expect_all_reached(seeds, reached);
}

}  // namespace
}  // namespace espalier::fabric::roce::workload
