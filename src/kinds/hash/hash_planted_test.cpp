// SPDX-License-Identifier: Apache-2.0
// The checks of hash maps notice each broken rule.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kinds/hash/hash_pipeline.hpp"
#include "kinds/hash/testing/hash_checks.hpp"

namespace espalier::hash {
namespace {

void expect_noticed(Bug bug, bool (*check)()) {
  EXPECT_TRUE(check());
  {
    const base::Planted planted(bug);
    EXPECT_FALSE(check());
  }
  EXPECT_TRUE(check());
}

// A reader is there all the while, so what is replaced is not freed: nothing but the slot says that
// it was.
bool a_get_in_flight_sees_the_put_before_it() {
  HashFixture f;
  f.put("k", "old");
  HashThread reader = f.another_thread();
  const ExposedEpoch exposed(reader);
  HashPipeline pipeline(*f.map, f.thread, PipelineDistances{}.within(4));
  const std::vector<Request> requests{{Op::put, 0, 0, "k", {}, "new"},
                                      {Op::get, 0, 1, "k", {}, {}}};
  std::string seen;
  pipeline.run(requests, [&](const Completion& done) {
    if (done.op == Op::get) seen = done.value;
  });
  return seen == "new";
}

TEST(HashPlanted, AHintThatIsBelievedIsNoticed) {
  expect_noticed(Bug::hint_believed, a_get_in_flight_sees_the_put_before_it);
}
TEST(HashPlanted, AMovedBinThatAnswersIsNoticed) {
  expect_noticed(Bug::moved_bin_answered, a_moved_bin_leads_to_the_new_one);
}
TEST(HashPlanted, AMissInABinThatChangesIsNoticed) {
  expect_noticed(Bug::changes_ignored, a_bin_that_moves_is_read_again);
}
TEST(HashPlanted, AChangeThatIsNotCountedIsNoticed) {
  expect_noticed(Bug::changes_not_counted, a_slot_that_moves_to_the_front_is_found);
}
TEST(HashPlanted, AWalkThatMissesASlotThatMovesIsNoticed) {
  expect_noticed(Bug::changes_ignored, a_walk_takes_a_slot_that_moves_to_the_front);
  expect_noticed(Bug::changes_not_counted, a_walk_takes_a_slot_that_moves_to_the_front);
}
TEST(HashPlanted, AWalkOfABinThatMovesIsNoticed) {
  expect_noticed(Bug::changes_ignored, a_walk_reads_a_bin_that_moves_again);
}
TEST(HashPlanted, AWalkThatDeliversASlotTwiceIsNoticed) {
  expect_noticed(Bug::doubles_delivered, a_walk_takes_a_slot_in_two_places_once);
}
TEST(HashPlanted, AWalkThatLooksWithoutEndIsNoticed) {
  expect_noticed(Bug::looks_without_end, a_walk_does_not_look_without_end);
}
TEST(HashPlanted, AFormerOwnerOfALockIsNoticed) {
  expect_noticed(Bug::owner_not_asked_again, a_former_owner_waits);
}
TEST(HashPlanted, ALockTakenFromAnOwnerThatIsInsideIsNoticed) {
  expect_noticed(Bug::owner_not_awaited, a_lock_is_taken_from_an_owner_that_is_out);
}
TEST(HashPlanted, ARecordWhoseGenerationIsNotConfirmedIsNoticed) {
  expect_noticed(Bug::generation_not_confirmed, a_freed_record_is_not_believed);
}
TEST(HashPlanted, ATornRecordThatIsNotConfirmedIsNoticed) {
  expect_noticed(Bug::generation_not_confirmed, a_torn_record_is_not_believed);
}
TEST(HashPlanted, AnUnreleasedAnswerIsNoticed) {
  expect_noticed(Bug::answer_unreleased, unreleased_records_are_not_answered);
}
TEST(HashPlanted, AReaderThatComesTooLateIsNoticed) {
  expect_noticed(Bug::purged_ignored, a_reader_that_comes_too_late_begins_again);
}
TEST(HashPlanted, ForgettingSnapshotsIsNoticed) {
  expect_noticed(Bug::holds_ignored, snapshots_have_what_they_need);
}
TEST(HashPlanted, TakingOutWhileASnapshotIsTakenIsNoticed) {
  expect_noticed(Bug::holding_ignored, a_snapshot_in_the_making_keeps_what_it_needs);
}
TEST(HashPlanted, AnEarlyAcknowledgementIsNoticed) {
  expect_noticed(Bug::acknowledge_before_release, writes_wait_for_their_release);
}
TEST(HashPlanted, ABegunWriteThatIsAnsweredEarlyIsNoticed) {
  expect_noticed(Bug::acknowledge_before_release, begun_writes_wait_for_their_release);
}
TEST(HashPlanted, FreeingUnderAReaderIsNoticed) {
  expect_noticed(Bug::record_freed_at_once, values_stay_for_their_reader);
}
TEST(HashPlanted, HandingOverARecordOfWhatIsReleasedIsNoticed) {
  expect_noticed(Bug::record_after_release, records_come_before_their_release);
}
TEST(HashPlanted, AReaderThatLooksWithoutEndIsNoticed) {
  expect_noticed(Bug::looks_without_end, a_reader_does_not_look_without_end);
}
TEST(HashPlanted, LinksThatErasesNeedAndOthersTakeAreNoticed) {
  expect_noticed(Bug::spare_links_not_first, erases_have_links_among_tiny_pairs);
}
TEST(HashPlanted, ReleasingWhatACrashCanLoseIsNoticed) {
  ASSERT_TRUE(writes_are_seen_once_they_are_durable());
  {
    const base::Planted planted(memory::Bug::released_before_durable);
    EXPECT_FALSE(writes_are_seen_once_they_are_durable());
  }
  EXPECT_TRUE(writes_are_seen_once_they_are_durable());
}
TEST(HashPlanted, HandingOverARecordOutsideTheLockIsNoticed) {
  expect_noticed(Bug::record_outside_lock, records_come_under_the_lock);
}

}  // namespace
}  // namespace espalier::hash
