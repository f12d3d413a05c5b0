// SPDX-License-Identifier: Apache-2.0
// Numbers that are taken by adding and by asking while epochs end, in simulated worlds: messages
// late, lost, doubled and out of order. ESPALIER_SEEDS says how many.
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "tests/support/sequencer_world.hpp"

namespace espalier::test {
namespace {

void run_sequencer_seeds(const fabric::sim::Faults& faults, std::uint64_t usually) {
  base::Seeds seeds(usually);
  SequencerCounts counts;
  for (std::uint64_t seed = 1; seed <= seeds.count(); ++seed) {
    ASSERT_EQ(run_sequencer_world(seed, faults, counts), "") << "seed " << seed;
    seeds.done();
  }
  seeds.report("ranges taken by adding", counts.added);
  seeds.report("ranges taken by asking", counts.asked);
  seeds.report("adds that met a seal", counts.refused_sealed);
  seeds.report("adds that were told after the seal behind them", counts.told_after_seal);
  seeds.report("epochs", counts.epochs);
  seeds.report("pairs lost", counts.pairs_lost);
  if (!seeds.enough()) return;
  EXPECT_GT(counts.added, seeds.count());
  EXPECT_GT(counts.asked, seeds.count());
  EXPECT_GT(counts.refused_sealed, 0u);
  EXPECT_GT(counts.refused_asking, 0u);
  EXPECT_GT(counts.told_after_seal, 0u);
  EXPECT_GT(counts.epochs, seeds.count());
}

TEST(SequencerSim, NoNumberComesTwiceNorAfterItsSeal) { run_sequencer_seeds({}, 20); }

TEST(SequencerSim, NorWhereAllGoesWrongThatCan) {
  run_sequencer_seeds(fabric::sim::Faults::harsh(), 20);
}

}  // namespace
}  // namespace espalier::test
