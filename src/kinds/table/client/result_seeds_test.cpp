// SPDX-License-Identifier: Apache-2.0
// Rows that a node writes into its client's memory are those of the table, even if the queue pairs
// that carry them and their messages fail: random queries over simulated fabrics, seed by seed.
//
// 100 seeds; ESPALIER_SEEDS says how many instead (docs/testing.md).
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "kinds/table/client/testing/result_world.hpp"

namespace espalier::client {
namespace {

TEST(ResultSeeds, TheRowsAreThoseOfTheTableWhateverBecomesOfThePairs) {
  const std::uint64_t first = base::seed_from_environment(1000);
  ResultsReached reached;
  const auto all_happened = [&] {
    return reached.link.cuts != 0 && reached.link.resumed != 0 && reached.link.lost_pairs != 0 &&
           reached.placed > reached.full && reached.full != 0 && reached.all_out != 0 &&
           reached.cancelled != 0 && reached.failed != 0;
  };
  for (base::Seeds seeds(100); seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t i = seeds.ended();
    LinkWorldOptions options;
    options.way = i % 2 == 0 ? wire::LinkWay::write : wire::LinkWay::send;
    ResultWorld world(first + i, options);
    ASSERT_EQ(world.run(8, reached), "") << "seed " << first + i;
  }
  EXPECT_GT(reached.link.cuts, 0u);
  EXPECT_GT(reached.link.resumed, 0u);
  EXPECT_GT(reached.link.lost_pairs, 0u);
  EXPECT_GT(reached.placed, reached.full);
  EXPECT_GT(reached.full, 0u);
  EXPECT_GT(reached.all_out, 0u);
  EXPECT_GT(reached.cancelled, 0u);
  EXPECT_GT(reached.failed, 0u);
}

}  // namespace
}  // namespace espalier::client
