// SPDX-License-Identifier: Apache-2.0
// The rules of links between nodes: each is broken once, and a seed of the simulated world of
// peer_world.hpp must detect it.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/planted.hpp"
#include "base/random.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "kinds/region/planted_region_bugs.hpp"
#include "tests/support/peer_world.hpp"

namespace espalier::test {
namespace {

// The error of the first seed that finds one; `tried`: how many were run.
std::string first_wrong_peers(const PeerWorldOptions& options, std::uint64_t seeds,
                              std::uint64_t& tried) {
  const std::uint64_t first = base::seed_from_environment(1);
  PeerReached reached;
  for (tried = 0; tried < seeds;) {
    const std::string wrong = run_peer_world(first + tried++, options, reached);
    if (!wrong.empty()) return "seed " + std::to_string(first + tried - 1) + ": " + wrong;
  }
  return {};
}

// Without the bug those seeds are tried that were with it.
template <class AnyBug>
void expect_noticed_by_peers(AnyBug bug, const PeerWorldOptions& options = {}) {
  constexpr std::uint64_t kSeedsMost = 200;
  std::uint64_t tried = 0;
  {
    const base::Planted planted(bug);
    const std::string wrong = first_wrong_peers(options, kSeedsMost, tried);
    EXPECT_NE(wrong, "") << "the bug was not noticed";
    ::testing::Test::RecordProperty("rejected_because", wrong);
  }
  std::uint64_t again = 0;
  EXPECT_EQ(first_wrong_peers(options, tried, again), "") << "without a bug";
}

// Steps with so many posts that links have no room for all.
PeerWorldOptions many_posts() {
  PeerWorldOptions options;
  options.posts = offload::PostsOfRequest::kMost - 4;
  return options;
}

TEST(PeerWorldPlanted, AFailedPostThatIsBelieved) {
  expect_noticed_by_peers(fabric::Bug::failed_post_believed);
}

TEST(PeerWorldPlanted, AFailureOfALinkThatIsTakenForSuccess) {
  expect_noticed_by_peers(offload::Bug::peer_failure_believed);
}

TEST(PeerWorldPlanted, APostThatIsPlacedBeforeAnEarlierWrite) {
  expect_noticed_by_peers(offload::Bug::peer_post_overtakes, many_posts());
}

TEST(PeerWorldPlanted, AnAtomicThatIsPostedAgain) {
  expect_noticed_by_peers(fabric::Bug::atomic_posted_again);
}

TEST(PeerWorldPlanted, AKeyThatStaysGoodBesideAnother) {
  expect_noticed_by_peers(region::Bug::key_kept_beside_another);
}

TEST(PeerWorldPlanted, AKeyThatOutlivesItsRegion) {
  expect_noticed_by_peers(region::Bug::keys_kept);
}

TEST(PeerWorldPlanted, APlaceOfAHopThatIsNotGivenBack) {
  expect_noticed_by_peers(offload::Bug::hop_place_kept);
}

}  // namespace
}  // namespace espalier::test
