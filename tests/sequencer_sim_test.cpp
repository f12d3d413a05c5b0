// SPDX-License-Identifier: Apache-2.0
// Numbers that are taken by atomics and by calls while epochs end, in simulated worlds: messages
// are delayed, lost, duplicated and reordered. ESPALIER_SEEDS sets how many seeds.
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "tests/support/sequencer_world.hpp"

namespace espalier::test {
namespace {

void run_sequencer_seeds(const fabric::sim::Faults& faults, std::uint64_t usually) {
  base::Seeds seeds(usually);
  SequencerCounts counts;
  const auto all_happened = [&] {
    return counts.added > seeds.ended() && counts.asked > seeds.ended() &&
           counts.refused_sealed != 0 && counts.refused_asking != 0 &&
           counts.told_after_seal != 0 && counts.epochs > seeds.ended();
  };
  for (; seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t seed = 1 + seeds.ended();
    ASSERT_EQ(run_sequencer_world(seed, faults, counts), "") << "seed " << seed;
  }
  seeds.report("ranges taken by adding", counts.added);
  seeds.report("ranges taken by asking", counts.asked);
  seeds.report("adds that met a seal", counts.refused_sealed);
  seeds.report("adds that were told after the seal behind them", counts.told_after_seal);
  seeds.report("epochs", counts.epochs);
  seeds.report("pairs lost", counts.pairs_lost);
  EXPECT_GT(counts.added, seeds.ended());
  EXPECT_GT(counts.asked, seeds.ended());
  EXPECT_GT(counts.refused_sealed, 0u);
  EXPECT_GT(counts.refused_asking, 0u);
  EXPECT_GT(counts.told_after_seal, 0u);
  EXPECT_GT(counts.epochs, seeds.ended());
}

TEST(SequencerSim, NoNumberComesTwiceNorAfterItsSeal) { run_sequencer_seeds({}, 20); }

TEST(SequencerSim, NorWhereAllGoesWrongThatCan) {
  run_sequencer_seeds(fabric::sim::Faults::harsh(), 20);
}

}  // namespace
}  // namespace espalier::test
