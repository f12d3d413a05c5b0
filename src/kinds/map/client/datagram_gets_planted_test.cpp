// SPDX-License-Identifier: Apache-2.0
// The checks of datagram gets notice a client that accepts answers to earlier gets, or answers
// without a valid tag.
#include <gtest/gtest.h>

#include "channel/rings/planted_client_bugs.hpp"
#include "kinds/map/client/testing/datagram_world.hpp"

namespace espalier::client {
namespace {

bool is_noticed(Bug bug) {
  const base::Planted planted(bug);
  const std::uint64_t base = base::seed_from_environment(45'100);
  DatagramWorldCounts counts;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    DatagramWorld world(base + seed, counts);
    if (!world.run(60).empty()) return true;
  }
  return false;
}

TEST(DatagramGetsRules, ItIsNoticedThatAnEarlierAnswerIsBelieved) {
  EXPECT_TRUE(is_noticed(Bug::datagram_number_not_asked));
}
TEST(DatagramGetsRules, ItIsNoticedThatAnAnswerWithoutATagIsBelieved) {
  EXPECT_TRUE(is_noticed(Bug::datagram_tag_not_asked));
}
TEST(DatagramGetsRules, NothingIsNoticedWithoutABug) { EXPECT_FALSE(is_noticed(Bug::none)); }

}  // namespace
}  // namespace espalier::client
