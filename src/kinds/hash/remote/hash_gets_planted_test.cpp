// SPDX-License-Identifier: Apache-2.0
// The check of gets by READ notices each broken rule of reading hash maps.
#include <gtest/gtest.h>

#include <string>

#include "kinds/hash/remote/testing/hash_world.hpp"

namespace espalier::place {
namespace {

/// What the first of so many seeds finds wrong; empty: none does.
std::string first_wrong_get(const HashWorldOptions& options, bool in_order, std::uint64_t seeds) {
  fabric::sim::Faults faults;
  faults.tear = 1;
  faults.tear_ns = {200, 20'000};
  faults.reads_in_order = in_order;
  HashWorldCounts counts;
  for (std::uint64_t seed = 100; seed < 100 + seeds; ++seed) {
    const std::string wrong = wrong_with_hash_reads(seed, faults, options, counts);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// Of gets one by one, and, where READs keep their order, of gets in groups.
void expect_noticed(hash::Bug bug, HashWorldOptions options = {}) {
  struct Way {
    bool in_order;
    bool together;
  };
  for (const auto [in_order, together] : {Way{true, false}, Way{false, false}, Way{true, true}}) {
    options.together = together;
    EXPECT_EQ(first_wrong_get(options, in_order, 2), "");
    {
      const base::Planted planted(bug);
      EXPECT_NE(first_wrong_get(options, in_order, 40), "") << in_order << together;
    }
  }
}

TEST(HashGetsPlanted, AMovedBinThatAnswersFromTheOldTableIsNoticed) {
  expect_noticed(hash::Bug::moved_bin_answered);
}
// Of few keys many are being written, and released long after the get that sees them has ended.
TEST(HashGetsPlanted, AnUnreleasedAnswerIsNoticed) {
  HashWorldOptions options;
  options.release_held_ns = 2'000'000;
  options.first_keys = options.keys = 40;
  expect_noticed(hash::Bug::answer_unreleased, options);
}
TEST(HashGetsPlanted, AMissThatDoesNotReadThePartitionsLineAgainIsNoticed) {
  expect_noticed(hash::Bug::purged_ignored);
}
// The host counts no lease here, so memory is reused immediately, which only generations show.
TEST(HashGetsPlanted, ARecordWhoseGenerationIsNotConfirmedIsNoticed) {
  HashWorldOptions options;
  options.counts_lease = false;
  options.first_keys = options.keys = 40;
  options.frees = 12;
  expect_noticed(hash::Bug::generation_not_confirmed, options);
}
TEST(HashGetsPlanted, ABucketThatCameBeforeItsLinkIsNoticed) {
  EXPECT_EQ(wrong_where_a_chain_grows(), "");
  for (const hash::Bug bug : {hash::Bug::links_not_awaited, hash::Bug::buckets_read_once}) {
    const base::Planted planted(bug);
    EXPECT_EQ(wrong_where_a_chain_grows(), "a key that was there throughout did not come");
  }
}
// Of few keys older states are soon taken out.
TEST(HashGetsPlanted, AMissByALineThatCameBeforeTheBucketsIsNoticed) {
  HashWorldOptions options;
  options.first_keys = options.keys = 40;
  options.frees = 12;
  expect_noticed(hash::Bug::line_before_buckets, options);
}
TEST(HashGetsPlanted, WhatWasReadUnderAnotherLeaseIsNoticed) {
  for (const bool together : {true, false}) {
    EXPECT_EQ(wrong_where_a_lease_is_lost(together), "");
    {
      const base::Planted planted(hash::Bug::other_term_believed);
      EXPECT_EQ(wrong_where_a_lease_is_lost(together),
                "what was read under a lease that was lost is answered");
    }
  }
}
// Its slot may be that of another by now.
TEST(HashGetsPlanted, ARememberedRecordThatIsBelievedIsNoticed) {
  const base::Planted planted(hash::Bug::kept_record_believed);
  const std::string wrong = "it came as " + std::string(40, '1');
  EXPECT_EQ(wrong_where_a_slot_comes_back(true, false), wrong);
  EXPECT_EQ(wrong_where_a_slot_comes_back(false, false), wrong);
  EXPECT_EQ(wrong_where_a_slot_comes_back(true, true), wrong);
}
// One that only what is remembered of a bin has led to may have been read while it was written.
TEST(HashGetsPlanted, ARecordThatNothingNamedAndIsRememberedIsNoticed) {
  for (const bool in_order : {true, false}) {
    EXPECT_EQ(wrong_where_a_record_is_read_ahead(in_order), "");
    const base::Planted planted(hash::Bug::any_record_kept);
    EXPECT_EQ(wrong_where_a_record_is_read_ahead(in_order),
              "what was read before it was whole is answered");
  }
}
// What is remembered names a record that may have been replaced.
TEST(HashGetsPlanted, ARememberedSlotThatIsBelievedIsNoticed) {
  HashWorldOptions options;
  options.together = true;
  options.first_keys = options.keys = 40;
  EXPECT_EQ(first_wrong_get(options, true, 2), "");
  const base::Planted planted(hash::Bug::hint_believed);
  EXPECT_NE(first_wrong_get(options, true, 40), "");
}

}  // namespace
}  // namespace espalier::place
