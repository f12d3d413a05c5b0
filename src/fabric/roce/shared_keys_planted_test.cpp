// SPDX-License-Identifier: Apache-2.0
// The rules of shared keys are broken one at a time, and a check notices.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/testing/shared_key_checks.hpp"

namespace espalier::fabric::roce {
namespace {

std::uint64_t rules_seed() { return base::seed_from_environment(71); }

TEST(SharedKeyRules, AFencedSessionThatReadsOnIsNoticed) {
  const base::Planted planted(Bug::shared_keys_outlive_own);
  EXPECT_EQ(one_of_two_is_fenced(rules_seed()), "a fenced session read");
}

TEST(SharedKeyRules, AChangedDuplicateThatIsDroppedIsNoticed) {
  const base::Planted planted(Bug::changed_duplicate_dropped);
  EXPECT_EQ(duplicates_carry_other_addresses(rules_seed()), "a duplicate got nothing");
}

TEST(SharedKeyRules, AnAnswerOfTwoPacketsIsNoticed) {
  const base::Planted planted(Bug::shared_read_of_any_length);
  EXPECT_NE(one_packet_answers(rules_seed()), "");
}

TEST(SharedKeyRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(one_of_two_is_fenced(rules_seed()), "");
  EXPECT_EQ(duplicates_carry_other_addresses(rules_seed()), "");
  EXPECT_EQ(one_packet_answers(rules_seed()), "");
}

}  // namespace
}  // namespace espalier::fabric::roce
