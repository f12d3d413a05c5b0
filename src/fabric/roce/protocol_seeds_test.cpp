// SPDX-License-Identifier: Apache-2.0
// The engine of `roce` does everything once and in order, whatever the network does: random work
// over bad networks, one seed after another, and all that seldom happens was seen to happen.
//
// 100 seeds; ESPALIER_SEEDS says how many instead (docs/testing.md).
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "fabric/roce/testing/protocol_world.hpp"

namespace espalier::fabric::roce::workload {
namespace {

void expect_all_reached(const base::Seeds& seeds, const Reached& reached) {
  const EndpointCounters& engine = reached.engine;
  const std::pair<const char*, std::uint64_t> rare[] = {
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
  for (const auto& [what, count] : rare) {
    EXPECT_TRUE(count > 0 || !seeds.enough()) << what;
    ::testing::Test::RecordProperty(what, std::to_string(count));
    seeds.report(what, count);
  }
}

TEST(RoceSeeds, NothingIsLostOrRepeatedWhateverTheNetworkDoes) {
  const std::uint64_t first = base::seed_from_environment(1000);
  base::Seeds seeds(100);
  Reached reached;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    ASSERT_EQ(World(first + i, {}).run(reached), "") << "seed " << first + i;
    seeds.done();
  }
  expect_all_reached(seeds, reached);
}

}  // namespace
}  // namespace espalier::fabric::roce::workload
