// SPDX-License-Identifier: Apache-2.0
// A client of a node over a fabric loses nothing, and no request runs twice, whatever happens to
// its queue pairs: random requests over simulated fabrics.
//
// 100 seeds, or a quarter for slow tests; ESPALIER_SEEDS sets another number (docs/testing.md).
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "channel/rings/tests/testing/link_world.hpp"

namespace espalier::client {
namespace {

class LinkSeeds : public ::testing::TestWithParam<wire::LinkWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, LinkSeeds,
                         ::testing::Values(wire::LinkWay::write, wire::LinkWay::send),
                         [](const auto& way) {
                           return std::string(way.param == wire::LinkWay::write ? "Write" : "Send");
                         });

TEST_P(LinkSeeds, EverythingIsDoneOnceWhateverBecomesOfThePairs) {
  const std::uint64_t first = base::seed_from_environment(1000);
  LinkReached reached;
  LinkWorldOptions options;
  options.way = GetParam();
  const auto all_happened = [&] {
    return reached.cuts != 0 && reached.pauses != 0 && reached.resumed != 0 &&
           reached.node_resumed != 0 && reached.lost_pairs != 0 && reached.ring_full != 0 &&
           reached.long_messages != 0;
  };
  for (base::Seeds seeds(100); seeds.more(all_happened()); seeds.done()) {
    const std::uint64_t seed = first + seeds.ended();
    LinkWorld world(seed, options);
    ASSERT_EQ(world.run(reached), "") << "seed " << seed;
    ASSERT_EQ(world.node().audit(), std::vector<std::string>{}) << "seed " << seed;
  }
  EXPECT_GT(reached.cuts, 0u);
  EXPECT_GT(reached.pauses, 0u);
  EXPECT_GT(reached.resumed, 0u);
  EXPECT_GT(reached.node_resumed, 0u);
  EXPECT_GT(reached.lost_pairs, 0u);
  EXPECT_GT(reached.ring_full, 0u);
  EXPECT_GT(reached.long_messages, 0u);
}

// Requests in flight fail at the client; the next node runs none of them, and serves new
// connections.
TEST_P(LinkSeeds, ANodeThatBeginsAgainDoesNothingOfWhatTheLastWasAsked) {
  const std::uint64_t first = base::seed_from_environment(500'000);
  LinkReached reached;
  LinkWorldOptions options;
  options.way = GetParam();
  const std::uint64_t seeds = base::Seeds(100).count() / 4 + 1;
  std::uint64_t lost = 0;
  for (std::uint64_t i = 0; i < seeds; ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    LinkWorld world(first + i, options);
    ASSERT_EQ(world.connect(), "");
    base::Random random(first + i);
    const std::uint64_t crash_ns = world.world().now_ns() + random.between(0, 3'000'000);
    const std::uint64_t down_ns = random.between(1'000, 30'000'000);
    world.plan_restart(crash_ns, down_ns);
    const std::string answered = world.go_on(reached);
    if (world.world().now_ns() < crash_ns + down_ns) world.world().run_until(crash_ns + down_ns);
    ASSERT_TRUE(answered == "lost" || answered.empty()) << answered;
    lost += answered == "lost" ? 1 : 0;
    world.forget();
    // Links may be cut meanwhile, for longer than one attempt takes.
    std::string connected = world.connect();
    for (int again = 0; again < 100 && !connected.empty(); ++again) connected = world.connect();
    ASSERT_EQ(connected, "");
    ASSERT_EQ(world.work(options.requests, reached), "");
    ASSERT_EQ(world.node().audit(), std::vector<std::string>{});
  }
  EXPECT_GT(lost, seeds / 2);
}

}  // namespace
}  // namespace espalier::client
