// SPDX-License-Identifier: Apache-2.0
// A node believes the hint of another node that a switch wrote into a get, and that is noticed.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "tests/support/hinted_gets.hpp"

namespace espalier::test {
namespace {

TEST(DatagramHintRules, ItIsNoticedThatAHintOfAnotherNodeIsBelieved) {
  const base::Planted planted(tree::Bug::hint_believed);
  HintedGetsCounts counts;
  std::string wrong;
  const std::uint64_t base = base::seed_from_environment(45'460);
  for (std::uint64_t seed = 0; seed < 10 && wrong.empty(); ++seed) {
    wrong = hinted_gets(base + seed, 1000, counts);
  }
  EXPECT_NE(wrong, "");
}

}  // namespace
}  // namespace espalier::test
