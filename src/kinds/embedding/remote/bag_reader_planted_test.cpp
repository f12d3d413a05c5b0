// SPDX-License-Identifier: Apache-2.0
// The check of bags by READ notices each broken rule of remote reads of rows.
#include <gtest/gtest.h>

#include <string>

#include "kinds/embedding/planted_embedding_bugs.hpp"
#include "kinds/embedding/remote/testing/embedding_world.hpp"

namespace espalier::place {
namespace {

using embedding::Bug;

/// What the first of so many seeds finds wrong; empty: none does.
std::string first_wrong_bag(const EmbeddingWorldOptions& options, bool in_order,
                            std::uint64_t seeds) {
  fabric::sim::Faults faults;
  faults.tear = 1;
  faults.tear_ns = {200, 10'000};
  faults.hold_read = in_order ? 0 : 0.3;
  faults.reads_in_order = in_order;
  EmbeddingWorldCounts counts;
  for (std::uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    const std::string wrong = wrong_with_bags_read(seed, faults, options, counts);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

void expect_noticed_in_bags(Bug bug, const EmbeddingWorldOptions& options, bool in_order) {
  EXPECT_EQ(first_wrong_bag(options, in_order, 2), "");
  const base::Planted planted(bug);
  EXPECT_NE(first_wrong_bag(options, in_order, 40), "") << in_order;
}

TEST(BagReaderPlanted, ATornRowThatIsBelievedIsNoticed) {
  for (const bool in_order : {true, false}) {
    expect_noticed_in_bags(Bug::torn_row_believed, {}, in_order);
    expect_noticed_in_bags(Bug::sequence_not_moved, {}, in_order);
  }
}

TEST(BagReaderPlanted, SequencesOfAListThatWasReplacedAreNoticed) {
  for (const bool in_order : {true, false}) {
    expect_noticed_in_bags(Bug::old_list_believed, {}, in_order);
  }
}

TEST(BagReaderPlanted, AHeaderThatIsNotLookedAtIsNoticed) {
  EmbeddingWorldOptions options;
  options.first_rows = 100;
  options.appended = 0;
  options.drops = 1;
  options.other_there = true;
  for (const bool in_order : {true, false}) {
    expect_noticed_in_bags(Bug::header_not_looked_at, options, in_order);
  }
}

TEST(BagReaderPlanted, AProofThatCameBeforeItsRowsIsNoticed) {
  expect_noticed_in_bags(Bug::proof_with_rows, {}, false);
}

}  // namespace
}  // namespace espalier::place
