// SPDX-License-Identifier: Apache-2.0
// Gets in datagrams that a switch tells where to begin: the node begins there, and answers are
// right whatever was told.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "tests/support/hinted_gets.hpp"

namespace espalier::test {
namespace {

TEST(DatagramHints, AnswersAreRightByOldTablesAndByThoseOfAnotherNode) {
  const std::uint64_t base = base::seed_from_environment(45'450);
  base::Seeds seeds(2);
  HintedGetsCounts counts;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    ASSERT_EQ(hinted_gets(base + i, 1000, counts), "") << "ESPALIER_SEED=" << base + i;
    seeds.done();
  }
  const std::uint64_t gets = 1000 * seeds.count();
  EXPECT_EQ(counts.hinted, gets);
  EXPECT_EQ(counts.admitted + counts.moved + counts.refused, gets);
  EXPECT_GT(counts.admitted, gets / 4) << "tables that are right lead to leaves";
  EXPECT_GT(counts.moved, 0u);
  EXPECT_GT(counts.of_another, 0u);
  EXPECT_GT(counts.found, gets / 4);
  EXPECT_GT(counts.absent, gets / 10);
  seeds.report("hints admitted", counts.admitted);
}

}  // namespace
}  // namespace espalier::test
