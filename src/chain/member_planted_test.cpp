// SPDX-License-Identifier: Apache-2.0
// The worlds notice a chain that breaks a rule.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chain/member.hpp"
#include "chain/planted_chain_bugs.hpp"
#include "chain/testing/chain_world.hpp"

namespace espalier::chain {
namespace {

/// What is wrong in the first of these worlds in which something is, of two and three members.
std::string first_wrong_world(std::uint64_t seeds, WorldTerms terms) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    terms.members = 2 + seed % 2;
    const WorldResult result = run_world(seed, terms);
    if (!result.wrong.empty()) return result.wrong;
  }
  return {};
}

constexpr WorldTerms kPlantedTerms{.fences = 30, .full = 0};

void expect_bug_noticed(Bug bug) {
  const base::Planted planted(bug);
  const std::string wrong = first_wrong_world(4000, kPlantedTerms);
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

View planted_view(std::uint64_t epoch, const std::vector<std::uint32_t>& numbers) {
  View view{.chain = 5, .epoch = epoch, .fence_ms = 1000, .members = {}, .whole = epoch > 1};
  for (const std::uint32_t number : numbers) {
    view.members.push_back({number, "m" + std::to_string(number), "shm:/m"});
  }
  return view;
}

/// Of three members, the head fails before its record is at the tail, then the next one. Returns
/// whether the remaining one shows less than that one has shown.
bool shows_less_after_two_failures() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecond});
  Member last({.chain = 5, .self = 3, .held = 0, .now_ns = kSecond});
  for (Member* const member : {&next, &last}) member->adopt(planted_view(1, {1, 2, 3}), kSecond);
  const Message append{.kind = MessageKind::append,
                       .from = 1,
                       .to = 2,
                       .chain = 5,
                       .epoch = 1,
                       .number = 1,
                       .first = 1,
                       .last = 1};
  EXPECT_EQ(next.receive(append, true, kSecond).take_last, 1U);
  next.persisted(1);
  std::uint64_t now_ns = 10 * kSecond;
  for (Member* const member : {&next, &last}) member->adopt(planted_view(2, {2, 3}), now_ns);
  std::vector<Message> beats;
  next.add_beats(now_ns, beats);
  EXPECT_EQ(beats.size(), 1U);
  const auto heard = last.receive(beats.front(), true, now_ns);
  EXPECT_TRUE(heard.answer);
  static_cast<void>(next.receive(*heard.answer, true, now_ns));
  const std::uint64_t shown = next.serves_until_ns(now_ns) > now_ns ? next.held() : 0;
  now_ns += 10 * kSecond;
  last.adopt(planted_view(3, {3}), now_ns);
  EXPECT_GT(last.serves_until_ns(now_ns), now_ns);
  return last.held() < shown;
}

/// A beat of epoch 1 is answered in epoch 2, by one that then is the head without the other.
/// Returns whether both serve.
bool two_serve_by_an_old_beat() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Member head({.chain = 5, .self = 1, .held = 0, .now_ns = kSecond});
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecond});
  for (Member* const member : {&head, &next}) member->adopt(planted_view(1, {1, 2, 3}), kSecond);
  std::uint64_t now_ns = 2 * kSecond;
  std::vector<Message> beats;
  head.add_beats(now_ns, beats);
  EXPECT_EQ(beats.size(), 2U);
  next.adopt(planted_view(2, {1, 2}), now_ns);
  const auto heard = next.receive(beats.front(), true, now_ns + 1);
  EXPECT_TRUE(heard.answer);
  head.adopt(planted_view(2, {1, 2}), now_ns + 2);
  static_cast<void>(head.receive(*heard.answer, true, now_ns + 3));
  now_ns += kSecond / 10;
  next.adopt(planted_view(3, {2}), now_ns);
  return head.serves_until_ns(now_ns) > now_ns && next.serves_until_ns(now_ns) > now_ns;
}

TEST(ChainPlanted, AnOldBeatThatLetsAHeadServeIsNoticed) {
  EXPECT_FALSE(two_serve_by_an_old_beat());
  const base::Planted planted(Bug::old_beat_counts);
  EXPECT_TRUE(two_serve_by_an_old_beat());
}

/// The head of a new chain has records that no other has, and is silent. Returns whether the next
/// member would go on without it.
bool leaves_out_who_has_more() {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  Member head({.chain = 5, .self = 1, .held = 3, .now_ns = kSecond});
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecond});
  for (Member* const member : {&head, &next}) member->adopt(planted_view(1, {1, 2}), kSecond);
  std::vector<Message> beats;
  head.add_beats(kSecond * 9 / 8, beats);
  EXPECT_EQ(beats.size(), 1U);
  EXPECT_TRUE(next.receive(beats.front(), true, kSecond * 9 / 8).answer);
  return next.proposal(3 * kSecond).has_value();
}

TEST(ChainPlanted, LeavingOutAHeadThatHasMoreIsNoticed) {
  EXPECT_FALSE(leaves_out_who_has_more());
  const base::Planted planted(Bug::left_out_early);
  EXPECT_TRUE(leaves_out_who_has_more());
}

TEST(ChainPlanted, AcknowledgingBeforeTheTailHasItIsNoticed) {
  expect_bug_noticed(Bug::acknowledged_early);
}

TEST(ChainPlanted, AcceptingAnOldEpochIsNoticed) { expect_bug_noticed(Bug::old_epoch_accepted); }

// Two failures within the moment that an append takes are too seldom in those worlds.
TEST(ChainPlanted, AHeadThatReadsBeforeTheTailAcknowledgedIsNoticed) {
  EXPECT_FALSE(shows_less_after_two_failures());
  const base::Planted planted(Bug::head_reads_early);
  EXPECT_TRUE(shows_less_after_two_failures());
}

TEST(ChainPlanted, AHeadThatDoesNotWaitForTheOneBeforeIsNoticed) {
  expect_bug_noticed(Bug::fence_ignored);
}

TEST(ChainPlanted, AHeadThatServesWithoutAnswersIsNoticed) {
  expect_bug_noticed(Bug::lease_ignored);
}

TEST(ChainPlanted, TakingARecordBehindAGapIsNoticed) { expect_bug_noticed(Bug::gap_accepted); }

// The tail's proposals are delayed, so that it, or the joining node, has often ended before.
constexpr WorldTerms kJoiningTerms{.fences = 40, .crash = 0.01, .full = 0, .slow = 0.5};

void expect_joining_bug_noticed(Bug bug) {
  const base::Planted planted(bug);
  const std::string wrong = first_wrong_world(4000, kJoiningTerms);
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

TEST(ChainPlanted, AMemberThatHasNotAllIsNoticed) { expect_joining_bug_noticed(Bug::joined_early); }

TEST(ChainPlanted, ATailThatForgetsWhatItOfferedIsNoticed) {
  expect_joining_bug_noticed(Bug::offer_forgotten);
}

TEST(ChainPlanted, ATailThatIsSureOfAnEpochThatItHasSeenBeforeIsNoticed) {
  expect_joining_bug_noticed(Bug::tail_restarts_sure);
}

// The tail that made an offer often does not receive the membership's answer for long.
constexpr WorldTerms kDeafTerms{.fences = 40, .cut = 0.01, .full = 0, .deaf = 0.03};

TEST(ChainPlanted, AHeadThatServesThoughAnotherMayHaveJoinedIsNoticed) {
  const base::Planted planted(Bug::offered_not_heard);
  const std::string wrong = first_wrong_world(4000, kDeafTerms);
  EXPECT_NE(wrong, "");
  ::testing::Test::RecordProperty("wrong", wrong);
}

TEST(ChainPlanted, WithoutABugNothingIsWrong) {
  EXPECT_EQ(first_wrong_world(400, kDeafTerms), "");
  EXPECT_EQ(first_wrong_world(150, kJoiningTerms), "");
  EXPECT_EQ(first_wrong_world(400, kPlantedTerms), "");
  EXPECT_EQ(first_wrong_world(400, {.fences = 30, .crash = 0.01, .full = 0.03}), "");
}

}  // namespace
}  // namespace espalier::chain
