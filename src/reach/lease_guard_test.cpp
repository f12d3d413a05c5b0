// SPDX-License-Identifier: Apache-2.0
#include "reach/lease_guard.hpp"

#include <gtest/gtest.h>

#include <coroutine>

#include "wire/one_sided.hpp"

namespace espalier::place {
namespace {

constexpr base::LeaseTerms kTerms{
    .renew_every_ns = 10, .believed_for_ns = 100, .lost_after_ns = 1000};

TEST(LeaseGuard, AsksForALeaseOnlyWhenAWalkBegins) {
  LeaseGuard guard(kTerms);
  EXPECT_FALSE(guard.due(0));
  const std::uint32_t tick = guard.begin();
  const auto asked = guard.due(5);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->id, 0u);
  EXPECT_FALSE(guard.due(6));  // one question at a time
  EXPECT_FALSE(guard.believed(6));
  guard.granted(77, 40, 5, 7);
  EXPECT_TRUE(guard.believed(7));
  guard.end(tick);
}

TEST(LeaseGuard, ARenewalNamesTheOldestWalkInFlight) {
  LeaseGuard guard(kTerms);
  const std::uint32_t first = guard.begin();
  ASSERT_TRUE(guard.due(0));
  guard.granted(77, 40, 0, 1);
  auto asked = guard.due(20);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->id, 77u);
  EXPECT_EQ(asked->oldest, 40u);
  const std::uint32_t before_answer = guard.begin();  // begins at the epoch reported last
  guard.renewed(50, 21);
  const std::uint32_t second = guard.begin();
  guard.end(first);
  asked = guard.due(40);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->oldest, 40u) << "a walk that began before the answer is of the epoch before";
  guard.renewed(60, 41);
  guard.end(before_answer);
  asked = guard.due(60);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->oldest, 50u);
  guard.renewed(70, 61);
  guard.end(second);
  EXPECT_FALSE(guard.due(1000)) << "nothing is in flight";
}

// A walk that begins while a renewal is on its way must be covered by what that renewal named.
TEST(LeaseGuard, WithoutWalksItNamesTheEpochToldLast) {
  LeaseGuard guard(kTerms);
  std::uint32_t tick = guard.begin();
  ASSERT_TRUE(guard.due(0));
  guard.granted(77, 40, 0, 1);
  guard.end(tick);
  tick = guard.begin();
  const auto asked = guard.due(500);  // after a pause
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->oldest, 40u);
  guard.end(tick);
}

TEST(LeaseGuard, IsBelievedForATime) {
  LeaseGuard guard(kTerms);
  const std::uint32_t tick = guard.begin();
  ASSERT_TRUE(guard.due(0));
  guard.granted(77, 40, 0, 1);
  EXPECT_TRUE(guard.believed(100)) << "the host may have answered as soon as it was asked";
  EXPECT_FALSE(guard.believed(101));
  guard.end(tick);
}

// The answer stayed unread: the client cannot know when the host sent it.
TEST(LeaseGuard, AnAnswerThatIsReadLateRenewsNothing) {
  LeaseGuard guard(kTerms);
  base::ReadyQueue ready(4);
  const std::uint32_t tick = guard.begin();
  ASSERT_TRUE(guard.due(0));
  guard.granted(77, 40, 0, 1);
  guard.wait(std::noop_coroutine(), ready, true);
  ASSERT_TRUE(guard.due(200));
  guard.renewed(41, 301);
  EXPECT_FALSE(guard.believed(301));
  EXPECT_TRUE(ready.empty()) << "it was answered by what may be a dead host's memory";
  ASSERT_TRUE(guard.due(301)) << "it is asked for anew at once";
  guard.renewed(42, 350);
  EXPECT_FALSE(ready.empty());
  guard.end(tick);
}

TEST(LeaseGuard, AHostThatIsTooFarAwayGivesNoLease) {
  LeaseGuard guard(kTerms);
  base::ReadyQueue ready(4);
  const std::uint32_t tick = guard.begin();
  guard.wait(std::noop_coroutine(), ready, false);
  std::uint64_t now = 0;
  for (int asked = 0; !guard.ended(); ++asked) {
    ASSERT_LT(asked, 100);
    ASSERT_TRUE(guard.due(now));
    now += 101;
    asked == 0 ? guard.granted(77, 40, now - 101, now) : guard.renewed(40, now);
  }
  EXPECT_FALSE(ready.empty());
  guard.end(tick);
}

TEST(LeaseGuard, WakesWhoWaits) {
  LeaseGuard guard(kTerms);
  base::ReadyQueue ready(4);
  const std::uint32_t tick = guard.begin();
  const std::uint64_t term = guard.term();
  guard.wait(std::noop_coroutine(), ready, false);
  ASSERT_TRUE(guard.due(0));
  guard.lost();  // walks waiting to enter keep waiting
  EXPECT_TRUE(ready.empty());
  EXPECT_NE(guard.term(), term);
  guard.wait(std::noop_coroutine(), ready, true);
  ASSERT_TRUE(guard.due(1));
  guard.granted(78, 41, 1, 2);
  EXPECT_FALSE(ready.empty());
  ready.pop();
  EXPECT_FALSE(ready.empty());
  ready.pop();
  EXPECT_TRUE(ready.empty());
  guard.wait(std::noop_coroutine(), ready, true);
  guard.lost();
  EXPECT_FALSE(ready.empty());
  guard.end(tick);
}

TEST(LeaseGuard, WhenThereWillBeNoneNothingIsAsked) {
  LeaseGuard guard(kTerms);
  const std::uint32_t tick = guard.begin();
  guard.end_all();
  EXPECT_TRUE(guard.ended());
  EXPECT_FALSE(guard.due(1));
  EXPECT_FALSE(guard.believed(1));
  guard.end(tick);
}

// A session stands and falls with all its leases, so those without walks are renewed too.
TEST(LeaseGuard, OneWithoutWalksIsRenewedBeforeItLapses) {
  const base::LeaseTerms terms{};
  LeaseGuard guard(terms);
  guard.granted(7, 3, 1000, 1000);
  EXPECT_FALSE(guard.idle_due(1000 + terms.lost_after_ns / 4 - 1));
  const auto asked = guard.idle_due(1000 + terms.lost_after_ns / 4);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->id, 7u);
  EXPECT_EQ(asked->oldest, 3u);
  EXPECT_FALSE(guard.idle_due(1000 + terms.lost_after_ns)) << "it is asked for already";
  guard.renewed(5, 2000 + terms.lost_after_ns / 4);
  EXPECT_FALSE(guard.idle_due(2000 + terms.lost_after_ns / 4));
  guard.lost();
  EXPECT_FALSE(guard.idle_due(2000 + 9 * terms.lost_after_ns)) << "there is none";
}

TEST(LeaseGuard, ALeaseIsGivenBackOnceAndThereIsNoOther) {
  LeaseGuard guard(kTerms);
  const std::uint32_t tick = guard.begin();
  ASSERT_TRUE(guard.due(0));
  guard.granted(77, 40, 0, 1);
  guard.end(tick);
  const auto asked = guard.give_back();
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->id, 77u);
  EXPECT_EQ(asked->oldest, wire::kLeaseGivenBack);
  EXPECT_TRUE(guard.ended());
  EXPECT_FALSE(guard.believed(1));
  EXPECT_FALSE(guard.give_back());
  EXPECT_FALSE(guard.idle_due(10'000));
}

}  // namespace
}  // namespace espalier::place
