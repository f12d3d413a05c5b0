// SPDX-License-Identifier: Apache-2.0
// The worlds notice a log that breaks a rule.
#include <gtest/gtest.h>

#include "log/planted_log_bugs.hpp"
#include "log/testing/log_world.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

/// What is wrong in the first of these worlds in which something is.
std::string first_wrong(const WorldTerms& terms) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const WorldResult result = run_world(seed, terms);
    if (!result.wrong.empty()) return result.wrong;
  }
  return {};
}

void expect_noticed(Bug bug, const WorldTerms& terms = {}) {
  {
    const base::Planted planted(bug);
    const std::string wrong = first_wrong(terms);
    EXPECT_NE(wrong, "");
    ::testing::Test::RecordProperty("wrong", wrong);
  }
  EXPECT_EQ(first_wrong(terms), "");
}

WorldTerms with_flips() {
  WorldTerms terms;
  terms.flips = true;
  return terms;
}

TEST(LogPlanted, AcknowledgingBeforeTheFlushIsNoticed) { expect_noticed(Bug::acknowledged_early); }

TEST(LogPlanted, ReplayingAStaleBlockAfterASecondCrashIsNoticed) {
  WorldTerms terms;
  terms.alike = true;  // so that the old block is where the new ones end
  terms.steps_max = 10;
  expect_noticed(Bug::goes_on_in_old_segment, terms);
}

// Of a block some units came to the disk, and others not.
TEST(LogPlanted, ReplayingATornRecordIsNoticed) { expect_noticed(Bug::checksum_ignored); }

TEST(LogPlanted, NotLookingAtChecksumsIsNoticed) {
  expect_noticed(Bug::checksum_ignored, with_flips());
}

TEST(LogPlanted, RemovingASegmentEarlyIsNoticed) { expect_noticed(Bug::removed_early); }

TEST(LogPlanted, BelievingWhatIsNotYetFlushedIsNoticed) {
  expect_noticed(Bug::recovered_unflushed);
}

TEST(LogPlanted, BelievingThePageCacheIsNoticed) {
  WorldTerms terms;
  terms.faults = {.fails = 0.1, .cached = true};
  expect_noticed(Bug::cache_believed, terms);
}

TEST(LogPlanted, ANameBeforeTheHeaderIsNoticed) { expect_noticed(Bug::header_late); }

TEST(LogPlanted, IgnoringWhereALaterSegmentBeginsIsNoticed) {
  expect_noticed(Bug::limit_ignored, with_flips());
}

TEST(LogPlanted, LostSegmentsThatStayAreNoticed) { expect_noticed(Bug::lost_kept, with_flips()); }

TEST(LogPlanted, CuttingAHoleIsNoticed) { expect_noticed(Bug::hole_cut, with_flips()); }

/// A client's value that is a block, of a log whose salt the client guesses to be 0, in a block
/// that was torn. Returns whether recovery takes that for damage.
bool forged_block_is_believed() {
  FaultyFolder folder(1);
  LogOptions options = small_options();
  const SegmentHeader guess{
      kSegmentMagic, kFormatVersion, kSmallSegment, kSomeNode, 1, 1, 1, 0, 0, 0};
  BlockBuilder forged(kUnitBytes, kUnitBytes);
  forged.begin(guess, 2 * kUnitBytes, 100, 90);
  forged.add_mark();
  const auto block = forged.finish();
  std::string value(kUnitBytes - sizeof(BlockHeader) - sizeof(RecordHeader), 'x');
  value.append(reinterpret_cast<const char*>(block.data()), block.size());
  {
    const auto log = Log::open(folder, options, ReadRecords().apply());
    append((*log)->writer(), value);
    EXPECT_TRUE((*log)->writer().flush());
    folder.crash();
  }
  folder.restart(true);
  folder.flip(segment_name(1), kUnitBytes + 60, 3);
  const auto log = Log::open(folder, options, ReadRecords().apply());
  return !log && log.error().fault == LogFault::hole;
}

TEST(LogPlanted, ASaltThatCanBeGuessedIsNoticed) {
  EXPECT_FALSE(forged_block_is_believed());
  const base::Planted planted(Bug::salt_guessable);
  EXPECT_TRUE(forged_block_is_believed());
}

WorldTerms with_several_writes() {
  WorldTerms terms;
  terms.writes_max = 4;
  return terms;
}

TEST(LogPlanted, AcknowledgingOutOfOrderIsNoticed) {
  expect_noticed(Bug::acknowledged_out_of_order, with_several_writes());
}

TEST(LogPlanted, AMarkAheadOfWhatIsDurableIsNoticed) {
  expect_noticed(Bug::mark_ahead, with_several_writes());
}

TEST(LogPlanted, AcknowledgingBehindOneOfSeveralThatHasFailedIsNoticed) {
  WorldTerms terms = with_several_writes();
  terms.faults.fails = 0.05;
  expect_noticed(Bug::acknowledged_after_failure, terms);
}

TEST(LogPlanted, AcknowledgingAfterAFailureIsNoticed) {
  WorldTerms terms;
  terms.faults.fails = 0.05;
  expect_noticed(Bug::acknowledged_after_failure, terms);
}

}  // namespace
}  // namespace espalier::log
