// SPDX-License-Identifier: Apache-2.0
// How a member joins behind the others, rule by rule (docs/design/chains.md).
#include <gtest/gtest.h>

#include <vector>

#include "chain/member.hpp"

namespace espalier::chain {
namespace {

constexpr std::uint64_t kJoiningT = 1'000'000'000;

/// Member 1 alone, which is head and tail, and number 2, which joins.
View joining_view(std::uint64_t epoch) {
  return {.chain = 5,
          .epoch = epoch,
          .fence_ms = 1000,
          .members = {{1, "a", "shm:/a"}},
          .joining = MemberEntry{2, "b", "shm:/b"},
          .whole = true};
}

/// Exchanges the messages of the tail and the joining node.
struct TailAndJoining {
  explicit TailAndJoining(std::uint64_t tail_held)
      : tail({.chain = 5, .self = 1, .held = tail_held, .now_ns = kJoiningT}),
        joins({.chain = 5, .self = 2, .held = 0, .now_ns = kJoiningT}) {
    tail.keeps_from(1);
  }
  /// All messages that are due, and their answers; records reach the other disk immediately.
  void talk(bool persists = true) {
    now_ns += kJoiningT / 8;
    tail.tick(now_ns);
    joins.tick(now_ns);
    std::vector<Message> due;
    tail.add_beats(now_ns, due);
    while (auto append = tail.append_due(now_ns)) {
      tail.appended(*append);
      due.push_back(*append);
    }
    for (const Message& message : due) say(message, tail, joins);
    if (persists) joins.persisted(joins.held());
    due.clear();
    joins.add_beats(now_ns, due);
    for (const Message& message : due) say(message, joins, tail);
    tail.tick(now_ns);
  }
  void say(const Message& message, Member& from, Member& to) const {
    const auto received = to.receive(message, true, now_ns);
    if (received.answer) static_cast<void>(from.receive(*received.answer, true, now_ns));
  }
  void adopt(const View& view) {
    tail.adopt(view, now_ns);
    joins.adopt(view, now_ns);
  }

  std::uint64_t now_ns = kJoiningT;
  Member tail;
  Member joins;
};

TEST(ChainJoining, IsOfferedOnceItHasAll) {
  TailAndJoining pair(4);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  EXPECT_TRUE(pair.joins.is_joining());
  EXPECT_FALSE(pair.joins.is_out());
  EXPECT_FALSE(pair.joins.is_tail());
  EXPECT_EQ(pair.joins.serves_until_ns(kJoiningT), 0u);
  // Nothing waits for it yet: neither serving, nor acknowledgements.
  EXPECT_EQ(pair.tail.waits_for(kJoiningT), "");
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  EXPECT_FALSE(pair.tail.proposal(kJoiningT));
  pair.talk(false);
  pair.talk(false);
  EXPECT_EQ(pair.joins.held(), 4u);
  EXPECT_FALSE(pair.tail.proposal(pair.now_ns));  // it has them in memory alone
  pair.talk();
  const auto offer = pair.tail.proposal(pair.now_ns);
  ASSERT_TRUE(offer);
  EXPECT_EQ(*offer, joining_view(2).with_joined());
  // From now on acknowledgements wait for it, whatever happens to the offer.
  pair.tail.persisted(5);
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  pair.tail.proposal_failed();
  pair.tail.tick(pair.now_ns + kJoiningT / 8);
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  pair.adopt(*offer);
  EXPECT_TRUE(pair.joins.is_tail());
  EXPECT_FALSE(pair.tail.is_tail());
  EXPECT_EQ(pair.tail.waits_for(pair.now_ns), "not all members answer");
  pair.talk();
  pair.talk();
  EXPECT_EQ(pair.tail.acknowledged(), 5u);
  EXPECT_EQ(pair.tail.waits_for(pair.now_ns), "");
  EXPECT_FALSE(pair.joins.has_lost());
}

TEST(ChainJoining, IsLeftOutWhereItWasOfferedAndIsSilent) {
  TailAndJoining pair(4);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  for (int i = 0; i < 3; ++i) pair.talk();
  ASSERT_TRUE(pair.tail.proposal(pair.now_ns));
  pair.tail.proposal_failed();
  const std::uint64_t heard_ns = pair.now_ns;
  for (int i = 1; i < 8; ++i)
    pair.tail.tick(heard_ns + static_cast<std::uint64_t>(i) * kJoiningT / 8);
  pair.tail.tick(heard_ns + kJoiningT);
  const auto next = pair.tail.proposal(heard_ns + kJoiningT);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->joining, std::nullopt);
  EXPECT_EQ(next->members, joining_view(2).members);
  pair.tail.persisted(9);
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  pair.tail.adopt(*next, heard_ns + kJoiningT);
  EXPECT_EQ(pair.tail.acknowledged(), 9u);
}

// The joining node may be a member by the offer, exclude the tail, and serve.
TEST(ChainJoining, ATailThatDoesNotHearWhomItOfferedServesNoMore) {
  TailAndJoining pair(4);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  for (int i = 0; i < 3; ++i) pair.talk();
  const auto offer = pair.tail.proposal(pair.now_ns);
  ASSERT_TRUE(offer);
  EXPECT_EQ(pair.tail.waits_for(pair.now_ns), "");
  const std::uint64_t until_ns = pair.tail.serves_until_ns(pair.now_ns);
  EXPECT_EQ(until_ns, pair.now_ns + kJoiningT / 2);
  // It is taken, and the answer is lost. What the other one answers from then on is no lease.
  pair.joins.adopt(*offer, pair.now_ns);
  for (int i = 0; i < 4; ++i) pair.talk();
  EXPECT_EQ(pair.tail.waits_for(until_ns), "not all members answer");
  EXPECT_EQ(pair.tail.serves_until_ns(until_ns), 0u);
  EXPECT_TRUE(pair.tail.take_wants_view());
  const View alone = offer->without({1});
  pair.joins.adopt(alone, pair.now_ns);
  EXPECT_EQ(pair.joins.waits_for(pair.now_ns + kJoiningT - 1), "the head before may still serve");
}

TEST(ChainJoining, ATailThatDoesNotHearWhomItOfferedAnswersNoHead) {
  View view = joining_view(2);
  view.members = {{3, "c", "shm:/c"}, {1, "a", "shm:/a"}};
  TailAndJoining pair(4);
  View before = view;
  before.epoch = 1;
  before.joining.reset();
  pair.tail.adopt(before, kJoiningT);
  pair.adopt(view);
  for (int i = 0; i < 3; ++i) pair.talk();
  const Message beat{.kind = MessageKind::beat, .from = 3, .to = 1, .chain = 5, .epoch = 2};
  const auto is_answered = [&](std::uint64_t now_ns) {
    return pair.tail.receive(beat, true, now_ns).answer.has_value();
  };
  EXPECT_TRUE(is_answered(pair.now_ns + kJoiningT / 2));  // nothing was offered yet
  ASSERT_TRUE(pair.tail.proposal(pair.now_ns));
  EXPECT_TRUE(is_answered(pair.now_ns + kJoiningT / 4));
  EXPECT_FALSE(is_answered(pair.now_ns + kJoiningT / 4 + 1));
}

TEST(ChainJoining, OneThatDiesBeforeItIsOfferedHoldsNothingUp) {
  TailAndJoining pair(4);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  for (int i = 0; i < 3; ++i) pair.talk();  // it has all that is acknowledged, and dies
  pair.tail.persisted(6);
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  pair.tail.tick(pair.now_ns + kJoiningT / 4);
  pair.tail.tick(pair.now_ns + kJoiningT / 2);
  EXPECT_EQ(pair.tail.acknowledged(), 6u);
  for (std::uint64_t i = 3; i < 20; ++i) pair.tail.tick(pair.now_ns + i * kJoiningT / 4);
  pair.tail.persisted(8);
  EXPECT_EQ(pair.tail.acknowledged(), 8u);
}

TEST(ChainJoining, OneThatStaysBehindHoldsNothingUp) {
  TailAndJoining pair(4);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  pair.talk(false);
  pair.talk(false);
  pair.tail.persisted(6);  // all was sent, so acknowledgements wait for it
  EXPECT_EQ(pair.tail.acknowledged(), 4u);
  pair.talk(false);
  pair.talk(false);
  pair.talk(false);
  EXPECT_EQ(pair.tail.acknowledged(), 6u);
  EXPECT_FALSE(pair.tail.proposal(pair.now_ns));
}

TEST(ChainJoining, ATailThatWasStartedAgainAsksForTheNextEpoch) {
  Member tail({.chain = 5, .self = 1, .held = 4, .now_ns = kJoiningT});
  tail.adopt(joining_view(2), kJoiningT);
  tail.persisted(5);
  EXPECT_EQ(tail.acknowledged(), 0u);
  EXPECT_EQ(tail.waits_for(3 * kJoiningT), "the next epoch: who joins may have joined in this one");
  const auto next = tail.proposal(kJoiningT);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, joining_view(2).again());
  tail.adopt(*next, kJoiningT);
  EXPECT_EQ(tail.acknowledged(), 5u);
}

TEST(ChainJoining, OneThatNobodyHasRecordsForBeginsAnew) {
  TailAndJoining pair(9);
  pair.tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}},
                  kJoiningT);
  pair.adopt(joining_view(2));
  pair.tail.keeps_from(7);
  std::vector<Message> due;
  pair.tail.add_beats(kJoiningT, due);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].first, 7u);
  EXPECT_FALSE(pair.joins.is_behind());
  pair.say(due[0], pair.tail, pair.joins);
  EXPECT_TRUE(pair.joins.is_behind());
}

TEST(ChainJoining, OneThatHasWhatTheTailHasNotIsLeftOut) {
  Member tail({.chain = 5, .self = 1, .held = 4, .now_ns = kJoiningT});
  tail.adopt(View{.chain = 5, .epoch = 1, .fence_ms = 1000, .members = {{1, "a", "x"}}}, kJoiningT);
  tail.adopt(joining_view(2), kJoiningT);
  Message answer{.kind = MessageKind::beat_answer, .from = 2, .to = 1, .chain = 5, .epoch = 2};
  answer.number = kJoiningT;
  answer.last = answer.acknowledged = 5;
  EXPECT_FALSE(tail.receive(answer, true, kJoiningT).answer);
  EXPECT_FALSE(tail.append_due(kJoiningT));
  const auto next = tail.proposal(kJoiningT);
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, joining_view(2).without({2}));
}

}  // namespace
}  // namespace espalier::chain
