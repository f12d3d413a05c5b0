// SPDX-License-Identifier: Apache-2.0
// A rule of posts that are not all signalled is broken, and a check notices.
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/testing/post_queue_checks.hpp"

namespace espalier::fabric {
namespace {

TEST(PostQueueRules, AFailureThatIsBelievedIsNoticed) {
  const base::Planted planted(Bug::failed_post_believed);
  const std::uint64_t seed = base::seed_from_environment(71);
  std::string found;
  for (std::uint64_t i = 0; i < 100 && found.empty(); ++i) {
    found = post_queue_under_failures(seed + i);
  }
  EXPECT_NE(found, "");
}

TEST(PostQueueRules, APostThatNothingSignalledFollowsIsNoticed) {
  const base::Planted planted(Bug::last_not_signalled);
  const std::uint64_t seed = base::seed_from_environment(71);
  std::string found;
  for (std::uint64_t i = 0; i < 100 && found.empty(); ++i) found = post_queue_in_peace(seed + i);
  EXPECT_NE(found, "");
}

TEST(PostQueueRules, WithoutABugNothingIsNoticed) {
  const std::uint64_t seed = base::seed_from_environment(71);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(post_queue_under_failures(seed + i), "") << "seed " << seed + i;
    EXPECT_EQ(post_queue_in_peace(seed + i), "") << "seed " << seed + i;
  }
}

}  // namespace
}  // namespace espalier::fabric
