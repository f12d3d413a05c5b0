// SPDX-License-Identifier: Apache-2.0
// The rules of tables in switches are broken one at a time, and a check notices.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "dataplane/testing/row_checks.hpp"
#include "dataplane/testing/table_checks.hpp"

namespace espalier::dataplane {
namespace {

// Whether a burst meets a change depends on how threads run: so there are many rounds, of which the
// first that finds something ends the check.
constexpr std::uint64_t kRounds = 5'000'000;

TEST(TableRules, ASeparatorOffByOneIsNoticed) {
  const base::Planted planted(Bug::separator_off_by_one);
  EXPECT_NE(lookups_at_separators(base::seed_from_environment(1), 20), "");
}

TEST(TableRules, AnIcrcThatIsNotUpdatedIsNoticed) {
  const base::Planted planted(Bug::icrc_not_updated);
  EXPECT_EQ(redirected_frames(base::seed_from_environment(2), 1), "an ICRC is wrong");
}

TEST(TableRules, AFlipThatWaitsForNobodyIsNoticed) {
  const base::Planted planted(Bug::flip_waits_for_nobody);
  EXPECT_EQ(changes_under_frames(kRounds), "a burst met half of a change");
}

TEST(TableRules, ACursorOfAnotherGenerationThatIsBelievedIsNoticed) {
  const base::Planted planted(Bug::other_generation_believed);
  EXPECT_EQ(frames_through_a_row(base::seed_from_environment(3), 60),
            "a READ went by a cursor of another generation");
}

TEST(TableRules, AShimThatIsNotRemovedIsNoticed) {
  const base::Planted planted(Bug::shim_not_removed);
  EXPECT_EQ(frames_through_a_row(base::seed_from_environment(3), 60), "a shim came to the node");
}

TEST(TableRules, AFrameThatIsNotRestoredIsNoticed) {
  const base::Planted planted(Bug::frame_not_restored);
  EXPECT_EQ(frames_through_a_row(base::seed_from_environment(3), 60), "a READ was not restored");
}

TEST(TableRules, AShimOfAnotherNodeThatIsBelievedIsNoticed) {
  const base::Planted planted(Bug::other_server_believed);
  EXPECT_EQ(frames_to_two_nodes(base::seed_from_environment(6), 60),
            "a READ went by the key of another node");
}

TEST(TableRules, AHintOfAnotherNodeIsNoticed) {
  const base::Planted planted(Bug::other_server_believed);
  EXPECT_EQ(gets_to_two_nodes(base::seed_from_environment(7), 10),
            "a get was told a node of another server");
}

TEST(TableRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(frames_to_two_nodes(base::seed_from_environment(6), 20), "");
  EXPECT_EQ(gets_to_two_nodes(base::seed_from_environment(7), 20), "");
  EXPECT_EQ(frames_through_a_row(base::seed_from_environment(3), 20), "");
  EXPECT_EQ(lookups_at_separators(base::seed_from_environment(1), 20), "");
  EXPECT_EQ(redirected_frames(base::seed_from_environment(2), 100), "");
  EXPECT_EQ(changes_under_frames(50), "");
}

}  // namespace
}  // namespace espalier::dataplane
