// SPDX-License-Identifier: Apache-2.0
// What work requests do over the simulated fabric, and in which order they complete.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

std::span<const std::byte> bytes_of_word(const std::uint64_t& word) {
  return std::as_bytes(std::span(&word, 1));
}
std::span<std::byte> bytes_of_word(std::uint64_t& word) {
  return std::as_writable_bytes(std::span(&word, 1));
}

struct SimRequests : testing::Test {
  void SetUp() override { ASSERT_TRUE(ends.connect()); }
  WorkRequest read(std::uint64_t id, std::uint64_t& into, std::uint64_t offset = 0) {
    return WorkRequest::read(id, bytes_of_word(into), memory.key(), memory.remote(offset));
  }
  WorkRequest write(std::uint64_t id, const std::uint64_t& from, std::uint64_t offset = 0) {
    return WorkRequest::write(id, bytes_of_word(from), memory.key(), memory.remote(offset));
  }

  TwoEnds ends{3};
  World& world = ends.world;
  End& a = ends.a;
  End& b = ends.b;
  Offer& memory = ends.memory;
};

TEST_F(SimRequests, ReadAndWriteMoveBytes) {
  std::vector<std::byte> out(3'000);
  base::Random(9).fill(out);
  std::vector<std::byte> in(3'000);
  a.pair->post(WorkRequest::write(1, out, memory.key(), memory.remote(100)));
  a.pair->post(WorkRequest::read(2, in, memory.key(), memory.remote(100)));
  ASSERT_TRUE(a.wait_completed(world, 2));
  EXPECT_EQ(in, out);
  EXPECT_EQ(std::memcmp(memory.at(100), out.data(), out.size()), 0);
  EXPECT_EQ(a.completions[0].opcode, Opcode::write);
  EXPECT_EQ(a.completions[1].opcode, Opcode::read);
  EXPECT_EQ(a.completions[1].bytes, 3'000u);
  EXPECT_EQ(a.completions[1].pair, a.pair->number());
}

TEST_F(SimRequests, AtomicsAnswerWithTheOldValue) {
  memory.set_word(8, 40);
  std::uint64_t old = 0;
  auto* const into = reinterpret_cast<std::byte*>(&old);
  const auto at = memory.remote(8);
  a.pair->post(WorkRequest::fetch_add(1, memory.key(), at, 2));
  a.pair->post(WorkRequest::compare_swap(2, memory.key(), at, 42, 50, into));
  a.pair->post(WorkRequest::compare_swap(3, memory.key(), at, 42, 60));
  ASSERT_TRUE(a.wait_completed(world, 3));
  EXPECT_EQ(a.completions[0].old_value, 40u);
  EXPECT_EQ(a.completions[1].old_value, 42u);
  EXPECT_EQ(old, 42u);
  EXPECT_EQ(a.completions[2].old_value, 50u);
  EXPECT_EQ(a.completions[2].status, Status::success);
  EXPECT_EQ(memory.word(8), 50u);
}

TEST_F(SimRequests, ZeroBytesTouchNoRegion) {
  a.pair->post(WorkRequest::read(1, {}, 0, 12345));
  a.pair->post(WorkRequest::write(2, {}, 99, 0));
  std::array<std::byte, 4> room{};
  b.pair->post_receives(std::vector<Receive>{{7, room}, {8, {}}});
  a.pair->post(WorkRequest::write_immediate(3, {}, 99, 0, 1234));
  a.pair->post(WorkRequest::send(4, {}));
  ASSERT_TRUE(a.wait_completed(world, 4));
  for (const Completion& completion : a.completions) EXPECT_EQ(completion.status, Status::success);
  b.poll();
  ASSERT_EQ(b.received.size(), 2u);
  EXPECT_EQ(b.received[0].immediate, 1234u);
  EXPECT_TRUE(b.received[0].with_immediate);
  EXPECT_EQ(b.received[1].bytes, 0u);
}

TEST_F(SimRequests, OnlyWhatIsInlinedMayChangeAfterPost) {
  std::uint64_t inlined = 1;
  std::uint64_t not_inlined = 1;
  a.pair->post(write(1, inlined, 0).as_inline());
  a.pair->post(write(2, not_inlined, 8));
  inlined = not_inlined = 2;
  ASSERT_TRUE(a.wait_completed(world, 2));
  EXPECT_EQ(memory.word(0), 1u);
  EXPECT_EQ(memory.word(8), 2u);  // the program's mistake is seen
}

TEST_F(SimRequests, SuccessOfTheUnsignalledIsNotTold) {
  std::uint64_t word = 1;
  for (std::uint64_t i = 0; i < 5; ++i) a.pair->post(write(i, word).unsignalled());
  a.pair->post(write(9, word));
  ASSERT_TRUE(a.wait_completed(world, 1));
  EXPECT_EQ(a.completions[0].work_id, 9u);
  // A failure always completes, and so does what it flushes.
  a.pair->post(WorkRequest::write(10, bytes_of_word(word), 1, 0).unsignalled());
  a.pair->post(write(11, word).unsignalled());
  ASSERT_TRUE(a.wait_completed(world, 3));
  EXPECT_EQ(a.completions[1].status, Status::remote_access);
  EXPECT_EQ(a.completions[2].status, Status::flushed);
  world.run_for(kSecondNs);
  a.poll();
  EXPECT_EQ(a.completions.size(), 3u);
}

TEST_F(SimRequests, CompletionsComeInTheOrderOfPosts) {
  world.faults().hold_read = 0.5;
  world.faults().tear = 0.5;
  std::vector<std::uint64_t> words(60);
  for (std::uint64_t i = 0; i < 60; ++i) {
    a.pair->post(i % 3 == 0 ? write(i, words[i], 8 * i) : read(i, words[i], 8 * i));
  }
  ASSERT_TRUE(a.wait_completed(world, 60));
  for (std::uint64_t i = 0; i < 60; ++i) EXPECT_EQ(a.completions[i].work_id, i);
  EXPECT_GT(world.counts().reads_reordered, 0u);
}

TEST_F(SimRequests, TheSendQueueTakesNoMoreThanItsDepth) {
  a.options.send_depth = 4;
  ASSERT_TRUE(connect(world, a, b, "b"));
  std::uint64_t word = 0;
  const std::vector<WorkRequest> six(6, write(1, word));
  Posted posted = a.pair->post(six);
  EXPECT_EQ(posted.taken, 4u);
  EXPECT_EQ(posted.stopped, Posted::Stopped::full);
  ASSERT_TRUE(a.wait_completed(world, 4));
  posted = a.pair->post(six);
  EXPECT_EQ(posted.taken, 4u);
  // Malformed ones stop the rest.
  ASSERT_TRUE(a.wait_completed(world, 8));
  std::vector<WorkRequest> bad{write(1, word), WorkRequest{}, write(1, word)};
  posted = a.pair->post(bad);
  EXPECT_EQ(posted.taken, 1u);
  EXPECT_EQ(posted.stopped, Posted::Stopped::malformed);
}

TEST_F(SimRequests, NoMoreReadsAreInFlightThanAllowed) {
  // With one in flight no READ can pass another; with many, some do.
  for (const bool one : {true, false}) {
    a.options.reads_in_flight = one ? 1 : 16;
    world.faults().hold_read = 0.5;
    ASSERT_TRUE(connect(world, a, b, "b"));
    const std::uint64_t before = world.counts().reads_reordered;
    a.completions.clear();
    std::vector<std::uint64_t> words(64);
    for (std::uint64_t i = 0; i < 64; ++i) a.pair->post(read(i, words[i]));
    ASSERT_TRUE(a.wait_completed(world, 64));
    EXPECT_EQ(world.counts().reads_reordered == before, one);
  }
}

TEST_F(SimRequests, AFenceWaitsForEarlierReads) {
  // Without a fence a WRITE can be done before an earlier READ of the same bytes.
  world.faults().hold_read = 0.5;
  bool overtaken = false;
  for (std::uint64_t i = 1; i <= 200; ++i) {
    const bool fenced = i % 2 == 0;
    std::uint64_t seen = 0;
    a.completions.clear();
    memory.set_word(0, 0);
    a.pair->post(read(1, seen));
    a.pair->post(fenced ? write(2, i).after_fence() : write(2, i));
    ASSERT_TRUE(a.wait_completed(world, 2));
    if (fenced) {
      EXPECT_EQ(seen, 0u);
    } else {
      overtaken |= seen == i;
    }
    EXPECT_EQ(memory.word(0), i);
  }
  EXPECT_TRUE(overtaken);
}

TEST_F(SimRequests, NodesCanTalkToThemselves) {
  End loop(*ends.b_endpoint);
  End other(*ends.b_endpoint);
  ASSERT_TRUE(connect(world, loop, other, "b"));
  std::uint64_t word = 6;
  loop.pair->post(write(1, word));
  ASSERT_TRUE(loop.wait_completed(world, 1));
  EXPECT_EQ(memory.word(0), 6u);
}

TEST_F(SimRequests, EndpointsOfANodeOfferTheSameRegions) {
  const auto second = world.add_endpoint("b", ends.b_endpoint->regions().shared_from_this());
  ASSERT_TRUE(second->listen("b, core 1").has_value());
  End c(*second);
  End from(*ends.a_endpoint);
  ASSERT_TRUE(connect(world, from, c, "b, core 1"));
  std::uint64_t word = 8;
  from.pair->post(write(1, word));
  ASSERT_TRUE(from.wait_completed(world, 1));
  EXPECT_EQ(memory.word(0), 8u);
}

}  // namespace
}  // namespace espalier::fabric::sim
