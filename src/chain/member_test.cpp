// SPDX-License-Identifier: Apache-2.0
// What a member decides, rule by rule, and worlds of members from a seed.
#include "chain/member.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "chain/testing/chain_world.hpp"

namespace espalier::chain {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;

View view_of(std::uint64_t epoch, const std::vector<std::uint32_t>& numbers) {
  View view{.chain = 5, .epoch = epoch, .fence_ms = 1000, .members = {}, .whole = epoch > 1};
  for (const std::uint32_t number : numbers) {
    view.members.push_back({number, "m" + std::to_string(number), "shm:/m"});
  }
  return view;
}

/// The beat of another member, or its answer.
Message beat_of(std::uint32_t from, std::uint32_t to, std::uint64_t epoch, MessageKind kind,
                std::uint64_t number) {
  return {.kind = kind, .from = from, .to = to, .chain = 5, .epoch = epoch, .number = number};
}

/// The numbers of the members of the proposed view; none: nothing is proposed.
std::vector<std::uint32_t> proposed_by(Member& member, std::uint64_t now_ns) {
  std::vector<std::uint32_t> numbers;
  const auto view = member.proposal(now_ns);
  if (!view) return numbers;
  EXPECT_EQ(view->epoch, member.epoch() + 1);
  EXPECT_TRUE(view->whole);
  for (const MemberEntry& entry : view->members) numbers.push_back(entry.number);
  return numbers;
}

using MemberNumbers = std::vector<std::uint32_t>;

void hear_answer(Member& member, Message answer, std::uint64_t now_ns) {
  EXPECT_FALSE(member.receive(answer, true, now_ns).answer);
}

TEST(ChainMember, AHeadAloneServesAndAcknowledgesByItsDisk) {
  Member member({.chain = 5, .self = 1, .held = 3, .now_ns = kSecondNs});
  EXPECT_EQ(member.serves_until_ns(kSecondNs), 0u);
  member.adopt(view_of(1, {1}), kSecondNs);
  EXPECT_TRUE(member.is_head());
  EXPECT_EQ(member.acknowledged(), 3u);
  EXPECT_EQ(member.serves_until_ns(kSecondNs), kSecondNs + kSecondNs / 2);
  member.persisted(9);
  EXPECT_EQ(member.acknowledged(), 9u);
}

TEST(ChainMember, AHeadServesForHalfOfTBehindTheBeatThatAllAnswered) {
  Member head({.chain = 5, .self = 1, .held = 0, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  hear_answer(head, beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs + 3), kSecondNs + 5);
  EXPECT_EQ(head.waits_for(kSecondNs + 5), "not all members answer");
  hear_answer(head, beat_of(3, 1, 1, MessageKind::beat_answer, kSecondNs), kSecondNs + 5);
  EXPECT_EQ(head.serves_until_ns(kSecondNs + 5), kSecondNs + kSecondNs / 2);
  EXPECT_EQ(head.serves_until_ns(2 * kSecondNs), 0u);
  // An answer of another epoch is none.
  hear_answer(head, beat_of(3, 1, 2, MessageKind::beat_answer, 2 * kSecondNs), 2 * kSecondNs);
  EXPECT_EQ(head.serves_until_ns(2 * kSecondNs), 0u);
  EXPECT_TRUE(head.take_wants_view());
  EXPECT_FALSE(head.take_wants_view());
}

TEST(ChainMember, AHeadAcknowledgesWhatTheTailHas) {
  Member head({.chain = 5, .self = 1, .held = 0, .now_ns = kSecondNs});
  Member tail({.chain = 5, .self = 2, .held = 0, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2}), kSecondNs);
  tail.adopt(view_of(1, {1, 2}), kSecondNs);
  head.persisted(4);
  EXPECT_EQ(head.releasable(), 0u);
  EXPECT_FALSE(head.append_due(kSecondNs));  // where the tail stands is not known
  hear_answer(head, beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs), kSecondNs);
  auto append = head.append_due(kSecondNs);
  ASSERT_TRUE(append);
  EXPECT_EQ(append->first, 1u);
  EXPECT_EQ(append->last, 4u);
  append->last = append->number = 3;
  head.appended(*append);
  const auto received = tail.receive(*append, true, kSecondNs);
  EXPECT_EQ(received.take_first, 1u);
  EXPECT_EQ(received.take_last, 3u);
  ASSERT_TRUE(received.answer);
  hear_answer(head, *received.answer, kSecondNs);
  EXPECT_EQ(head.releasable(), 0u);  // the tail has it in memory alone
  tail.persisted(3);
  std::vector<Message> due;
  tail.add_beats(kSecondNs, due);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].acknowledged, 3u);
  EXPECT_TRUE(head.receive(due[0], true, kSecondNs).answer);
  EXPECT_EQ(head.releasable(), 3u);
}

TEST(ChainMember, WhatDoesNotGoOnOrHasNoRoomIsNotTaken) {
  Member tail({.chain = 5, .self = 2, .held = 4, .now_ns = kSecondNs});
  tail.adopt(view_of(1, {1, 2}), kSecondNs);
  Message append = beat_of(1, 2, 1, MessageKind::append, 7);
  append.first = 6;
  append.last = 7;
  auto received = tail.receive(append, true, kSecondNs);
  EXPECT_EQ(received.take_first, 0u);
  ASSERT_TRUE(received.answer);
  EXPECT_EQ(received.answer->last, 4u);
  append.first = 3;
  EXPECT_EQ(tail.receive(append, false, kSecondNs).take_first, 0u);
  received = tail.receive(append, true, kSecondNs);
  EXPECT_EQ(received.take_first, 5u);
  EXPECT_EQ(received.take_last, 7u);
  EXPECT_EQ(tail.receive(append, true, kSecondNs).take_first, 0u);  // it has them
}

TEST(ChainMember, ASealedEpochChangesNothingMore) {
  Member tail({.chain = 5, .self = 3, .held = 0, .now_ns = kSecondNs});
  tail.adopt(view_of(2, {1, 2, 3}), kSecondNs);
  Message append = beat_of(2, 3, 1, MessageKind::append, 1);
  append.first = append.last = 1;
  const auto received = tail.receive(append, true, kSecondNs);
  EXPECT_EQ(received.take_first, 0u);
  ASSERT_TRUE(received.answer);
  EXPECT_EQ(received.answer->epoch, 2u);  // by which the sender learns of it
  // Left out, it holds back what it holds.
  tail.persisted(1);
  const std::uint64_t before = tail.acknowledged();
  tail.adopt(view_of(3, {1, 2}), kSecondNs);
  tail.persisted(9);
  EXPECT_EQ(tail.acknowledged(), before);
  EXPECT_TRUE(tail.is_out());
  EXPECT_EQ(tail.serves_until_ns(kSecondNs), 0u);
}

TEST(ChainMember, ANewHeadWaitsForTheFenceAndForTheTail) {
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecondNs});
  next.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  Message append = beat_of(1, 2, 1, MessageKind::append, 2);
  append.first = 1;
  append.last = 2;
  EXPECT_EQ(next.receive(append, true, kSecondNs).take_last, 2u);
  next.persisted(2);
  // The head's last beat that was answered.
  std::uint64_t now_ns = 2 * kSecondNs;
  EXPECT_TRUE(next.receive(beat_of(1, 2, 1, MessageKind::beat, now_ns), true, now_ns).answer);
  next.adopt(view_of(2, {2, 3}), now_ns + 1000);
  EXPECT_EQ(next.waits_for(now_ns + 1000), "the head before may still serve");
  // It is not answered any more so that it counts.
  const auto late = next.receive(beat_of(1, 2, 1, MessageKind::beat, now_ns), true, now_ns + 2000);
  ASSERT_TRUE(late.answer);
  EXPECT_EQ(late.answer->epoch, 2u);
  now_ns += kSecondNs;
  Message answer = beat_of(3, 2, 2, MessageKind::beat_answer, now_ns);
  hear_answer(next, answer, now_ns);
  EXPECT_EQ(next.waits_for(now_ns), "the tail has not acknowledged all that it holds");
  answer.last = answer.acknowledged = 2;
  hear_answer(next, answer, now_ns);
  EXPECT_EQ(next.serves_until_ns(now_ns), now_ns + kSecondNs / 2);
}

TEST(ChainMember, ABeatOfTheEpochBeforeIsNoLeaseInThisOne) {
  Member head({.chain = 5, .self = 1, .held = 0, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  const std::uint64_t adopted_ns = 2 * kSecondNs;
  head.adopt(view_of(2, {1, 2}), adopted_ns);
  hear_answer(head, beat_of(2, 1, 2, MessageKind::beat_answer, adopted_ns - 1), adopted_ns + 1);
  EXPECT_EQ(head.waits_for(adopted_ns + 1), "not all members answer");
  hear_answer(head, beat_of(2, 1, 2, MessageKind::beat_answer, adopted_ns), adopted_ns + 1);
  EXPECT_EQ(head.serves_until_ns(adopted_ns + 1), adopted_ns + kSecondNs / 2);
}

TEST(ChainMember, ANewHeadWaitsForWhoseBeatItAnsweredInWhateverEpoch) {
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecondNs});
  next.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  const std::uint64_t now_ns = 10 * kSecondNs;
  next.adopt(view_of(2, {1, 2}), now_ns);
  EXPECT_TRUE(next.receive(beat_of(1, 2, 1, MessageKind::beat, now_ns), true, now_ns).answer);
  next.adopt(view_of(3, {2}), now_ns + 1);
  EXPECT_EQ(next.waits_for(now_ns + kSecondNs - 1), "the head before may still serve");
  EXPECT_EQ(next.waits_for(now_ns + kSecondNs), "");
}

TEST(ChainMember, WhoIsSilentIsLeftOutAndNobodyForAPauseOfOnesOwn) {
  Member member({.chain = 5, .self = 2, .held = 0, .now_ns = kSecondNs});
  member.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  EXPECT_TRUE(member.receive(beat_of(1, 2, 1, MessageKind::beat, 1), true, kSecondNs).answer);
  std::uint64_t now_ns = kSecondNs;
  for (int i = 0; i < 15; ++i) {
    now_ns += kSecondNs / 16;
    member.tick(now_ns);
    EXPECT_TRUE(member.receive(beat_of(3, 2, 1, MessageKind::beat, now_ns), true, now_ns).answer);
    EXPECT_FALSE(member.proposal(now_ns));
  }
  now_ns += kSecondNs / 16;
  member.tick(now_ns);
  EXPECT_EQ(proposed_by(member, now_ns), (MemberNumbers{2, 3}));
  EXPECT_FALSE(member.proposal(now_ns));  // once
  member.proposal_failed();
  EXPECT_TRUE(member.proposal(now_ns));
  member.proposal_failed();
  now_ns += 10 * kSecondNs;
  member.tick(now_ns);
  EXPECT_FALSE(member.proposal(now_ns));
}

TEST(ChainMember, NobodyIsLeftOutBeforeAllHaveWhatTheHeadBeganWith) {
  Member next({.chain = 5, .self = 2, .held = 0, .now_ns = kSecondNs});
  next.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  EXPECT_FALSE(next.proposal(3 * kSecondNs));  // it does not know what the head has
  Message beat = beat_of(1, 2, 1, MessageKind::beat, 1);
  beat.first = beat.last = 7;
  EXPECT_TRUE(next.receive(beat, true, 3 * kSecondNs).answer);
  EXPECT_FALSE(next.proposal(5 * kSecondNs));
  next.persisted(7);
  beat.acknowledged = 7;
  EXPECT_TRUE(next.receive(beat, true, 5 * kSecondNs).answer);
  EXPECT_EQ(proposed_by(next, 5 * kSecondNs), (MemberNumbers{1, 2}));
  next.proposal_failed();
  EXPECT_EQ(proposed_by(next, 7 * kSecondNs), (MemberNumbers{2}));

  Member head({.chain = 5, .self = 1, .held = 7, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2, 3}), kSecondNs);
  Message answer = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  hear_answer(head, answer, 3 * kSecondNs);
  EXPECT_FALSE(head.proposal(3 * kSecondNs));
  EXPECT_EQ(proposed_by(head, 5 * kSecondNs), (MemberNumbers{1}));  // which has all of it
  head.proposal_failed();
  answer.last = answer.acknowledged = 7;
  hear_answer(head, answer, 5 * kSecondNs);
  EXPECT_EQ(proposed_by(head, 5 * kSecondNs), (MemberNumbers{1, 2}));
}

TEST(ChainMember, OneThatHasLostWhatWasAcknowledgedEndsItself) {
  Member tail({.chain = 5, .self = 3, .held = 4, .now_ns = kSecondNs});
  tail.adopt(view_of(2, {1, 2, 3}), kSecondNs);
  Message beat = beat_of(1, 3, 1, MessageKind::beat, 1);
  beat.acknowledged = 5;
  EXPECT_TRUE(tail.receive(beat, true, kSecondNs).answer);
  EXPECT_FALSE(tail.has_lost());  // of another epoch
  beat.epoch = 2;
  beat.acknowledged = 4;
  EXPECT_TRUE(tail.receive(beat, true, kSecondNs).answer);
  EXPECT_FALSE(tail.has_lost());
  beat.acknowledged = 5;
  static_cast<void>(tail.receive(beat, true, kSecondNs));
  EXPECT_TRUE(tail.has_lost());
  EXPECT_FALSE(tail.proposal(9 * kSecondNs));
  // Those behind it may have more on their disks than is acknowledged.
  Member head({.chain = 5, .self = 1, .held = 4, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 3}), kSecondNs);
  beat = beat_of(3, 1, 1, MessageKind::beat, 1);
  beat.last = beat.acknowledged = 5;
  EXPECT_TRUE(head.receive(beat, true, kSecondNs).answer);
  EXPECT_FALSE(head.has_lost());
}

/// The head of two, which has nine records and knows that the tail has acknowledged six.
Member head_of_two() {
  Member head({.chain = 5, .self = 1, .held = 0, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2}), kSecondNs);
  head.persisted(9);
  Message answer = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  answer.last = answer.acknowledged = 6;
  hear_answer(head, answer, kSecondNs);
  return head;
}

TEST(ChainMember, WhatWasAcknowledgedIsNotSentAgainForAnOldAnswer) {
  Member head = head_of_two();
  const auto append = head.append_due(kSecondNs);
  ASSERT_TRUE(append);
  EXPECT_EQ(append->first, 7u);
  head.appended(*append);
  head.lost(*append, kSecondNs);
  Message old = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  old.last = 2;
  hear_answer(head, old, kSecondNs);
  ASSERT_TRUE(head.append_due(kSecondNs));
  EXPECT_EQ(head.append_due(kSecondNs)->first, 7u);
  head.appended(*head.append_due(kSecondNs));
  old.kind = MessageKind::append_answer;
  old.number = 5;
  hear_answer(head, old, kSecondNs);
  ASSERT_TRUE(head.append_due(2 * kSecondNs));
  EXPECT_EQ(head.append_due(2 * kSecondNs)->first, 7u);
}

// Its answer, which says that it took nothing, is late: by now it has the records, and no buffer
// has them.
TEST(ChainMember, WhatIsDueAgainIsNotOnceItIsAcknowledged) {
  Member head = head_of_two();
  const auto append = head.append_due(kSecondNs);
  ASSERT_TRUE(append);
  head.appended(*append);
  Message answer = beat_of(2, 1, 1, MessageKind::append_answer, 9);
  answer.last = 6;
  hear_answer(head, answer, kSecondNs);
  ASSERT_TRUE(head.append_due(2 * kSecondNs));
  EXPECT_EQ(head.append_due(2 * kSecondNs)->first, 7u);
  Message beat = beat_of(2, 1, 1, MessageKind::beat, 2 * kSecondNs);
  beat.last = beat.acknowledged = 8;
  EXPECT_TRUE(head.receive(beat, true, 2 * kSecondNs).answer);
  ASSERT_TRUE(head.append_due(2 * kSecondNs));
  EXPECT_EQ(head.append_due(2 * kSecondNs)->first, 9u);
}

TEST(ChainMember, WhatDidNotLeaveIsDueAgainSoon) {
  Member head = head_of_two();
  Message append = *head.append_due(kSecondNs);
  append.last = append.number = 8;
  head.appended(append);
  Message more = *head.append_due(kSecondNs);
  EXPECT_EQ(more.first, 9u);
  head.appended(more);
  head.unsent(append, kSecondNs);
  head.unsent(more, kSecondNs);
  EXPECT_FALSE(head.append_due(kSecondNs));
  ASSERT_TRUE(head.append_due(kSecondNs + kSecondNs / 1000));  // and no beat was answered
  EXPECT_EQ(head.append_due(kSecondNs + kSecondNs / 1000)->first, 7u);
  // Nothing is on its way: all eight may be.
  for (int i = 0; i < 3; ++i) {
    auto due = head.append_due(kSecondNs + kSecondNs / 1000);
    ASSERT_TRUE(due);
    due->last = due->number = due->first;
    head.appended(*due);
  }
  // One of an epoch that is over changes nothing.
  head.adopt(view_of(2, {1, 2}), 2 * kSecondNs);
  head.unsent(append, 2 * kSecondNs);
  EXPECT_FALSE(head.append_due(3 * kSecondNs));
}

TEST(ChainMember, OneThatWasStartedAgainIsSentWhatItHasLost) {
  Member head = head_of_two();
  const Message append = *head.append_due(kSecondNs);
  head.appended(append);
  Message answer = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  answer.last = 7;
  hear_answer(head, answer, kSecondNs);
  EXPECT_FALSE(head.append_due(kSecondNs));  // they may still come
  answer.kind = MessageKind::append_answer;
  answer.number = answer.last = 9;  // in memory alone
  hear_answer(head, answer, kSecondNs);
  EXPECT_FALSE(head.append_due(kSecondNs));
  answer = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  answer.last = 7;
  hear_answer(head, answer, kSecondNs);
  ASSERT_TRUE(head.append_due(kSecondNs));
  EXPECT_EQ(head.append_due(kSecondNs)->first, 8u);
}

TEST(ChainMember, AMemberBehindOneThatHasMoreDoesNotServe) {
  Member head({.chain = 5, .self = 1, .held = 2, .now_ns = kSecondNs});
  head.adopt(view_of(1, {1, 2}), kSecondNs);
  Message answer = beat_of(2, 1, 1, MessageKind::beat_answer, kSecondNs);
  answer.last = 3;
  hear_answer(head, answer, kSecondNs);
  EXPECT_EQ(head.waits_for(kSecondNs), "the next member has records that it has not");
  EXPECT_FALSE(head.append_due(kSecondNs));
}

/// Worlds from the environment's seed on, until in enough of them members were left out and joined.
void expect_good_worlds(std::uint64_t usually, const WorldTerms& terms) {
  base::Seeds seeds(usually);
  const std::uint64_t first = base::seed_from_environment(1);
  std::uint64_t acknowledged = 0;
  std::uint64_t reads = 0;
  std::uint64_t epochs = 0;
  std::uint64_t joined = 0;
  const auto all_happened = [&] {
    const std::uint64_t count = seeds.ended();
    return epochs > count + count / 4 && joined > count / 4;
  };
  while (seeds.more(all_happened())) {
    const std::uint64_t seed = first + seeds.ended();
    const WorldResult result = run_world(seed, terms);
    ASSERT_EQ(result.wrong, "") << "seed " << seed;
    acknowledged += result.acknowledged;
    reads += result.reads;
    epochs += result.epochs;
    joined += result.joined;
    seeds.done();
  }
  // Of worlds in which nothing happens nothing is proven.
  EXPECT_GT(acknowledged, 100 * seeds.ended());
  EXPECT_GT(reads, 50 * seeds.ended());
  EXPECT_TRUE(all_happened()) << epochs << " epochs, " << joined << " joined";
  seeds.report("epochs", epochs);
  seeds.report("joined", joined);
}

TEST(ChainWorld, NothingIsLostOrSeenLessOfInChainsOfTwo) {
  expect_good_worlds(60, {.members = 2, .fences = 30});
}

TEST(ChainWorld, NothingIsLostOrSeenLessOfInChainsOfThree) {
  expect_good_worlds(60, {.members = 3, .fences = 30});
}

TEST(ChainWorld, NothingIsLostOrSeenLessOfInChainsOfFive) {
  expect_good_worlds(20, {.members = 5, .fences = 30, .crash = 0.002, .late = 0.05});
}

}  // namespace
}  // namespace espalier::chain
