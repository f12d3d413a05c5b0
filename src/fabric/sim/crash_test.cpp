// SPDX-License-Identifier: Apache-2.0
// Loss, links that fail one way, and nodes that crash, pause and come back.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

Words ones() {
  Words words;
  words.fill(1);
  return words;
}

std::uint64_t delivered(Offer& memory) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < Words().size(); ++i) sum += memory.word(8 * i);
  return sum;
}

WorkRequest write(std::uint64_t id, const Words& words, Offer& memory) {
  return WorkRequest::write(id, std::as_bytes(std::span(words)), memory.key(), memory.remote(0));
}

TEST(SimLoss, AtomicsAreDoneExactlyOnce) {
  Faults faults = Faults::harsh();
  faults.loss = 0.15;
  faults.duplication = 0.3;
  faults.late = 0.05;
  Counts all;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TwoEnds ends(seed, faults);
    ends.a.options.retries = 7;
    if (!ends.connect()) continue;
    std::uint64_t done = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      ends.a.pair->post(WorkRequest::fetch_add(i, ends.memory.key(), ends.memory.remote(0), 1));
    }
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 100));
    ends.world.run_for(20'000'000);  // what is late comes too
    for (const Completion& completion : ends.a.completions) {
      if (completion.status != Status::success) continue;
      EXPECT_EQ(completion.old_value, done);
      ++done;
    }
    EXPECT_GE(ends.memory.word(0), done);
    EXPECT_TRUE(done < 100 || ends.memory.word(0) == 100) << seed;
    all.lost += ends.world.counts().lost;
    all.late += ends.world.counts().late;
    all.sent_again += ends.world.counts().sent_again;
    all.duplicated += ends.world.counts().duplicated;
    all.duplicates_refused += ends.world.counts().duplicates_refused;
  }
  EXPECT_GT(all.lost, 0u);
  EXPECT_GT(all.late, 0u);
  EXPECT_GT(all.sent_again, 0u);
  EXPECT_GT(all.duplicated, 0u);
  EXPECT_GT(all.duplicates_refused, 0u);
}

TEST(SimLoss, ALateDuplicateOfAWriteDoesNotUndoWhatFollowed) {
  Faults faults;
  faults.duplication = 1;
  faults.late = 0.5;
  faults.late_ns = {10'000, 80'000};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    TwoEnds ends(seed, faults);
    ASSERT_TRUE(ends.connect());
    std::array<std::uint64_t, 20> values{};
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      values[i] = i + 1;
      ends.a.pair->post(WorkRequest::write(i, std::as_bytes(std::span(&values[i], 1)),
                                           ends.memory.key(), ends.memory.remote(0)));
    }
    ASSERT_TRUE(ends.a.wait_completed(ends.world, values.size()));
    ends.memory.set_word(0, 99);
    ends.world.run_for(1'000'000);
    EXPECT_EQ(ends.memory.word(0), 99u);
  }
}

TEST(SimLoss, ALinkThatFailsEitherWayExceedsTheRetries) {
  for (const bool there : {true, false}) {
    for (const std::uint32_t retries : {0u, 3u}) {
      TwoEnds ends;
      ends.a.options.retries = retries;
      ASSERT_TRUE(ends.connect());
      if (there) ends.world.cut("a", "b");
      if (!there) ends.world.cut("b", "a");
      const Words out = ones();
      const std::uint64_t start = ends.world.now_ns();
      ends.a.pair->post(write(1, out, ends.memory));
      ends.a.pair->post(write(2, out, ends.memory));
      ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
      EXPECT_EQ(ends.a.completions[0].status, Status::retry_exceeded);
      EXPECT_EQ(ends.a.completions[1].status, Status::flushed);
      EXPECT_EQ(ends.a.pair->ended_by(), Status::retry_exceeded);
      EXPECT_GE(ends.world.now_ns() - start, (retries + 1) * ends.a.options.timeout_ns);
      EXPECT_EQ(ends.world.counts().sent_again, 2 * retries);
      EXPECT_EQ(ends.world.counts().retry_exceeded, 1u);
      // It may have been done: here it has, where only the answers are lost.
      EXPECT_EQ(delivered(ends.memory), there ? 0 : out.size());
      ends.world.run_for(kSecondNs);
      EXPECT_EQ(ends.b.pair->state(),
                there ? QueuePair::State::connected : QueuePair::State::error);
    }
  }
}

TEST(SimLoss, ALinkThatHealsInTimeOnlyTakesLonger) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  ends.world.cut("a", "b");
  ends.world.after(350'000, [&] { ends.world.heal("a", "b"); });
  const Words out = ones();
  ends.a.pair->post(write(1, out, ends.memory));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::success);
  EXPECT_EQ(ends.world.counts().cut_off, 4u);
  EXPECT_EQ(ends.world.counts().sent_again, 4u);
}

Faults slowly_torn() {
  Faults faults;
  faults.tear = 1;
  faults.tear_ns = {20'000, 20'000};
  return faults;
}

TEST(SimCrash, ATargetThatCrashesKeepsHalfAWrite) {
  bool half = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    TwoEnds ends(seed, slowly_torn());
    ASSERT_TRUE(ends.connect());
    const Words out = ones();
    ends.a.pair->post(write(1, out, ends.memory));
    std::uint64_t at_crash = 0;
    ends.world.after(12'000, [&] {
      ends.world.crash("b");
      at_crash = delivered(ends.memory);
    });
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
    EXPECT_EQ(ends.a.completions[0].status, Status::retry_exceeded);
    EXPECT_EQ(delivered(ends.memory), at_crash);
    EXPECT_EQ(ends.b.pair->state(), QueuePair::State::error);
    half |= at_crash != 0 && at_crash != out.size();
    EXPECT_EQ(ends.world.counts().crashes, 1u);
    // Nothing can be done with what is left of it.
    EXPECT_EQ(ends.b_endpoint->connect("b", ends.b.options, {}).error().code, Code::system);
    EXPECT_EQ(ends.b_endpoint->listen("x").error().code, Code::system);
    EXPECT_EQ(ends.b.pair->post(WorkRequest::send(1, {})).taken, 1u);
  }
  EXPECT_TRUE(half);
}

TEST(SimCrash, WhatACrashedRequesterHadSentIsDoneWhollyPartlyOrNot) {
  std::array<int, 3> seen{};
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    TwoEnds ends(seed, slowly_torn());
    ends.world.faults().crash_loss = 0.2;
    ASSERT_TRUE(ends.connect());
    const Words out = ones();
    ends.a.pair->post(write(1, out, ends.memory));
    ends.world.after(1'200, [&] { ends.world.crash("a"); });
    ends.world.run_for(1'000'000);
    const std::uint64_t sum = delivered(ends.memory);
    ++seen[sum == 0 ? 0 : sum == out.size() ? 2 : 1];
    EXPECT_EQ(ends.a.pair->state(), QueuePair::State::error);
    EXPECT_EQ(ends.b.pair->state(), QueuePair::State::connected);  // it has not heard of it
  }
  EXPECT_TRUE(seen[0] != 0 && seen[1] != 0 && seen[2] != 0);
}

TEST(SimCrash, ANodeThatComesBackKnowsNobody) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  const Words out = ones();
  const auto again = ends.world.restart("b");
  ASSERT_TRUE(again->listen("b").has_value());
  End b(*again);
  Offer memory(*again, 4096);
  ends.a.pair->post(write(1, out, ends.memory));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::retry_exceeded);
  EXPECT_EQ(delivered(ends.memory), 0u);
  ASSERT_TRUE(connect(ends.world, ends.a, b, "b"));
  ends.a.pair->post(write(2, out, memory));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
  EXPECT_EQ(ends.a.completions[1].status, Status::success);
  EXPECT_EQ(delivered(memory), out.size());
}

TEST(SimCrash, AtomicsGoOnAfterTheirUnitHasCrashed) {
  Faults faults;
  faults.split_atomic_ns = {1'000, 50'000};
  for (std::uint64_t crash_ns = 0; crash_ns < 60'000; crash_ns += 5'000) {
    TwoEnds ends(1, faults);
    ASSERT_TRUE(ends.connect());
    for (std::uint64_t i = 0; i < 4; ++i) {
      ends.a.pair->post(WorkRequest::fetch_add(i, ends.memory.key(), ends.memory.remote(0), 1));
    }
    ends.world.run_for(crash_ns);
    const auto again = ends.world.restart("b");
    ASSERT_TRUE(again->listen("b").has_value());
    End b(*again);
    Offer memory(*again, 64);
    ASSERT_TRUE(ends.a.wait_ended(ends.world));
    ASSERT_TRUE(connect(ends.world, ends.a, b, "b"));
    const std::size_t completion = ends.a.completions.size();
    ends.a.pair->post(WorkRequest::fetch_add(9, memory.key(), memory.remote(0), 1));
    ASSERT_TRUE(ends.a.wait_completed(ends.world, completion + 1));
    EXPECT_EQ(memory.word(0), 1u);
  }
}

TEST(SimPause, WhatComesMeanwhileWaitsOrIsLost) {
  for (const double loss : {0.0, 1.0}) {
    TwoEnds ends;
    ends.world.faults().pause_loss = loss;
    ASSERT_TRUE(ends.connect());
    ends.world.pause("b");
    for (std::uint64_t i = 0; i < 3; ++i) {
      ends.a.pair->post(WorkRequest::fetch_add(i, ends.memory.key(), ends.memory.remote(0), 1));
    }
    ends.world.run_for(3 * ends.a.options.timeout_ns + 50'000);
    EXPECT_EQ(ends.memory.word(0), 0u);
    EXPECT_GT(ends.world.counts().held, 0u);
    ends.world.resume("b");
    const std::uint64_t resumed = ends.world.now_ns();
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 3));
    EXPECT_EQ(ends.a.completions[2].status, Status::success);
    EXPECT_EQ(ends.world.now_ns() - resumed < 20'000, loss == 0.0);
    ends.world.run_for(kSecondNs);
    EXPECT_EQ(ends.memory.word(0), 3u);
  }
}

TEST(SimPause, AfterTooLongTheOldRequestIsStillDone) {
  // A side that has given a paused node up must revoke its own keys, or this happens.
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  ends.world.pause("b");
  const Words out = ones();
  ends.a.pair->post(write(1, out, ends.memory));
  ends.world.after(10'000, [&] { ends.world.cut("a", "b"); });
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::retry_exceeded);
  EXPECT_EQ(delivered(ends.memory), 0u);
  ends.world.resume("b");
  ends.world.run_for(1'000'000);
  EXPECT_EQ(delivered(ends.memory), out.size());
  EXPECT_EQ(ends.b.pair->state(), QueuePair::State::connected);
}

TEST(SimPause, ANodeThatIsRestartedIsNotPaused) {
  for (const bool crash_first : {true, false}) {
    TwoEnds ends;
    ASSERT_TRUE(ends.connect());
    if (crash_first) ends.world.crash("b");
    ends.world.pause("b");
    const auto again = ends.world.restart("b");
    ASSERT_TRUE(again->listen("b").has_value());
    End b(*again);
    EXPECT_TRUE(connect(ends.world, ends.a, b, "b"));
  }
}

}  // namespace
}  // namespace espalier::fabric::sim
