// SPDX-License-Identifier: Apache-2.0
// What a target refuses, and what a revoke stops half way.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <vector>

#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

// Posts one request between two good ones, and returns its status. All the rest is checked
// here: both pairs end, for this reason, and what was in flight is flushed.
Status completed_of(std::uint64_t seed, const Faults& faults, RemoteRights rights, Domain domain,
                    const std::function<WorkRequest(Offer&, std::span<std::byte>)>& make) {
  TwoEnds ends(seed, faults);
  auto& [world, a_endpoint, b_endpoint, a, b, memory] = ends;
  Offer offer(*b_endpoint, 4096, rights, domain);
  EXPECT_TRUE(ends.connect());
  std::array<std::byte, 512> bytes{};
  const auto good = WorkRequest::read(1, std::span(bytes).first(8), memory.key(), memory.remote(0));
  b.pair->post(WorkRequest::send(1, bytes));  // which will find no receive
  a.pair->post(good);
  a.pair->post(make(offer, bytes));
  a.pair->post(good);
  EXPECT_TRUE(a.wait_completed(world, 3));
  EXPECT_EQ(a.completions[0].status, Status::success);
  EXPECT_EQ(a.completions[2].status, Status::flushed);
  EXPECT_EQ(a.pair->state(), QueuePair::State::error);
  EXPECT_EQ(a.pair->ended_by(), a.completions[1].status);
  b.poll();
  EXPECT_EQ(b.pair->ended_by(), a.completions[1].status);
  EXPECT_EQ(b.completions.size(), 1u);
  for (const Completion& completion : b.completions) EXPECT_EQ(completion.status, Status::flushed);
  EXPECT_EQ(world.counts().refused, 1u);
  for (std::size_t i = 0; i < 512; ++i) EXPECT_EQ(offer.word(8 * i), 0u);
  return a.completions[1].status;
}

TEST(SimRegion, WhatIsNotOfferedIsRefused) {
  constexpr RemoteRights kRead = RemoteRights::read;
  Faults faults = Faults::harsh();
  faults.loss = 0;
  faults.late = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const auto completion = [&](RemoteRights rights, Domain domain, auto make) {
      return completed_of(seed, faults, rights, domain, make);
    };
    using Bytes = std::span<std::byte>;
    EXPECT_EQ(completion(kAllRights, 0,
                         [](Offer& o, Bytes b) {
                           return WorkRequest::read(2, b, o.key() ^ 0x10000, o.remote(0));
                         }),
              Status::remote_access);
    EXPECT_EQ(completion(kAllRights, 0,
                         [](Offer& o, Bytes b) {
                           return WorkRequest::write(2, b, o.key(), o.remote(4096 - 511));
                         }),
              Status::remote_access);
    EXPECT_EQ(
        completion(kAllRights, 7,
                   [](Offer& o, Bytes b) { return WorkRequest::read(2, b, o.key(), o.remote(0)); }),
        Status::remote_access);
    EXPECT_EQ(completion(
                  kRead, 0,
                  [](Offer& o, Bytes b) { return WorkRequest::write(2, b, o.key(), o.remote(0)); }),
              Status::remote_access);
    EXPECT_EQ(completion(kRead, 0,
                         [](Offer& o, Bytes) {
                           return WorkRequest::fetch_add(2, o.key(), o.remote(0), 1);
                         }),
              Status::remote_access);
    EXPECT_EQ(completion(kAllRights, 0,
                         [](Offer& o, Bytes) {
                           return WorkRequest::fetch_add(2, o.key(), o.remote(4), 1);
                         }),
              Status::remote_invalid);
  }
}

TEST(SimRegion, AnImmediateThatIsRefusedTakesNoReceive) {
  TwoEnds ends;
  ASSERT_TRUE(ends.connect());
  ends.b.pair->post_receives(std::vector<Receive>(1));
  std::array<std::byte, 8> bytes{};
  ends.a.pair->post(WorkRequest::write_immediate(1, bytes, 1, 0, 5));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::remote_access);
  ends.b.poll();
  ASSERT_EQ(ends.b.received.size(), 1u);
  EXPECT_EQ(ends.b.received[0].status, Status::flushed);
}

TEST(SimRegion, ARefusalIsHeardThoughMessagesAreLost) {
  Faults faults = Faults::harsh();
  faults.loss = 0.2;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    TwoEnds ends(seed, faults);
    if (!ends.connect()) continue;
    std::array<std::byte, 256> bytes{};
    const auto key = ends.memory.key();
    ends.a.pair->post(WorkRequest::read(1, bytes, key, ends.memory.remote(0)));
    ends.a.pair->post(WorkRequest::read(2, bytes, key + 1, ends.memory.remote(0)));
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
    if (ends.a.completions[0].status != Status::success) continue;  // seven times in a row
    EXPECT_TRUE(ends.a.completions[1].status == Status::remote_access ||
                ends.a.completions[1].status == Status::retry_exceeded);
    EXPECT_EQ(ends.b.pair->state(), QueuePair::State::error);
  }
}

// Revokes in the middle, and then looks at the memory: nothing is touched any more.
TEST(SimRegion, ARevokeStopsAWriteHalfWay) {
  Faults faults;
  faults.tear = 1;
  faults.tear_ns = {20'000, 20'000};
  bool half = false;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    TwoEnds ends(seed, faults);
    ASSERT_TRUE(ends.connect());
    Words out;
    out.fill(1);
    const auto delivered = [&] {
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i) sum += ends.memory.word(8 * i);
      return sum;
    };
    ends.a.pair->post(WorkRequest::write(1, std::as_bytes(std::span(out)), ends.memory.key(),
                                         ends.memory.remote(0)));
    std::uint64_t at_revoke = 0;
    ends.world.after(12'000, [&] {
      ends.memory.region.revoke();
      at_revoke = delivered();
    });
    ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
    ends.world.run_for(1'000'000);
    EXPECT_EQ(ends.a.completions[0].status, Status::remote_access);
    EXPECT_EQ(ends.b.pair->ended_by(), Status::remote_access);
    EXPECT_EQ(delivered(), at_revoke);
    half |= at_revoke != 0 && at_revoke != out.size();
    EXPECT_EQ(ends.world.counts().revoked, at_revoke != 0);
  }
  EXPECT_TRUE(half);
}

TEST(SimRegion, ARevokeFailsAReadThatHasBegunAndWhatIsBehindIt) {
  Faults faults;
  faults.tear = 1;
  faults.tear_ns = {20'000, 20'000};
  TwoEnds ends(1, faults);
  ASSERT_TRUE(ends.connect());
  Offer other(*ends.b_endpoint, 4096);
  Words in;
  Words in_other;
  std::uint64_t word = 5;
  const auto bytes = std::as_writable_bytes(std::span(in));
  const auto bytes_other = std::as_writable_bytes(std::span(in_other));
  ends.a.pair->post(WorkRequest::read(1, bytes_other, other.key(), other.remote(0)));
  ends.a.pair->post(WorkRequest::read(2, bytes, ends.memory.key(), ends.memory.remote(0)));
  ends.a.pair->post(WorkRequest::read(3, bytes_other, other.key(), other.remote(0)));
  ends.a.pair->post(
      WorkRequest::write(4, std::as_bytes(std::span(&word, 1)), other.key(), other.remote(0)));
  ends.world.after(12'000, [&] { ends.memory.region.revoke(); });
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 4));
  EXPECT_EQ(ends.world.counts().revoked, 1u);
  EXPECT_EQ(ends.a.completions[0].status, Status::success);  // begun earlier, and of another region
  EXPECT_EQ(ends.a.completions[1].status, Status::remote_access);
  EXPECT_EQ(ends.a.completions[2].status, Status::flushed);
  EXPECT_EQ(ends.a.completions[3].status, Status::flushed);
}

TEST(SimRegion, ARevokeBetweenLoadAndStoreLeavesTheWord) {
  Faults faults;
  faults.split_atomic_ns = {20'000, 20'000};
  TwoEnds ends(1, faults);
  ASSERT_TRUE(ends.connect());
  ends.a.pair->post(WorkRequest::fetch_add(1, ends.memory.key(), ends.memory.remote(0), 1));
  ends.world.after(12'000, [&] { ends.memory.region.revoke(); });
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 1));
  EXPECT_EQ(ends.a.completions[0].status, Status::remote_access);
  EXPECT_EQ(ends.memory.word(0), 0u);
  // The atomic unit of the node is free again.
  Offer other(*ends.b_endpoint, 64);
  ASSERT_TRUE(ends.connect());
  ends.a.pair->post(WorkRequest::fetch_add(2, other.key(), other.remote(0), 1));
  ASSERT_TRUE(ends.a.wait_completed(ends.world, 2));
  EXPECT_EQ(other.word(0), 1u);
}

}  // namespace
}  // namespace espalier::fabric::sim
