// SPDX-License-Identifier: Apache-2.0
// SendBuffers: what fits, what waits, and that two ends never wait for each other for ever.
#include "fabric/ofi/send_buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.hpp"
#include "fabric/ofi/testing/fake_channel.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::kFrames;
using wire::ofi::kPayloadMax;
using wire::ofi::RecordHead;
using wire::ofi::RecordKind;

RecordHead head_of(RecordKind kind, std::uint32_t bytes) {
  RecordHead head{};
  head.kind = static_cast<std::uint8_t>(kind);
  head.bytes = bytes;
  return head;
}

void fill(SendBuffer& out, std::uint32_t bytes, std::byte with) {
  std::fill_n(out.add(head_of(RecordKind::send, bytes)), bytes, with);
}

TEST(OfiSendBuffer, WhatIsAddedTogetherLeavesTogether) {
  FakeChannel channel;
  for (std::uint32_t bytes : {0u, 1u, 8u, 100u}) {
    ASSERT_EQ(channel.out().room(bytes), bytes);
    fill(channel.out(), bytes, std::byte{7});
  }
  EXPECT_TRUE(channel.frames.empty());
  channel.out().flush();
  ASSERT_EQ(channel.frames.size(), 1u);
  const auto records = channel.records();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[1].payload.size(), 1u);
  EXPECT_TRUE(std::all_of(records[3].payload.begin(), records[3].payload.end(),
                          [](std::byte b) { return b == std::byte{7}; }));
  channel.out().flush();
  EXPECT_EQ(channel.frames.size(), 1u);
}

TEST(OfiSendBuffer, NoMoreLeavesThanThePeerHasRoomFor) {
  FakeChannel channel;
  SendBuffer& out = channel.out();
  std::uint32_t frames = 0;
  for (; const auto room = out.room(kPayloadMax); ++frames) {
    ASSERT_EQ(*room, kPayloadMax);
    fill(out, *room, std::byte{1});
    out.flush();
    channel.leave();
    ASSERT_LE(frames, kFrames);
  }
  EXPECT_EQ(frames, kFrames - 1);  // one is kept back
  EXPECT_FALSE(out.room(0));
  // For giving room back, if that is worth a frame.
  for (std::uint32_t i = 0; i + 1 < kFrames / 4; ++i) ASSERT_TRUE(out.took());
  out.flush();
  EXPECT_EQ(channel.frames.size(), kFrames - 1);
  ASSERT_TRUE(out.took());
  out.flush();
  ASSERT_EQ(channel.frames.size(), kFrames);
  EXPECT_EQ(FrameReader::open(channel.frames.back())->head().taken, kFrames / 4);
  // Nor does more come than the credits allow.
  for (std::uint32_t i = 0; i < kFrames; ++i) EXPECT_TRUE(out.took());
  EXPECT_FALSE(out.took());
  // A peer that claims to have taken more than was sent, or less than before, is not believed.
  EXPECT_FALSE(out.peer_took(kFrames + 1));
  EXPECT_TRUE(out.peer_took(3));
  EXPECT_FALSE(out.peer_took(2));
  EXPECT_EQ(out.room(9), 9u);
}

TEST(OfiSendBuffer, BuffersAreNotUsedAgainBeforeTheyAreFree) {
  FakeChannel channel;
  SendBuffer& out = channel.out();
  for (std::uint32_t i = 0; i + 1 < kFrames; ++i) {
    ASSERT_TRUE(out.room(8));
    fill(out, 8, std::byte{1});
    out.flush();
  }
  ASSERT_TRUE(out.peer_took(kFrames - 1));
  ASSERT_TRUE(out.room(8));  // the last one
  fill(out, 8, std::byte{2});
  out.flush();
  EXPECT_FALSE(out.room(8));
  channel.leave();
  EXPECT_TRUE(out.room(8));
}

TEST(OfiSendBuffer, WhatCannotLeaveWaitsInOrder) {
  FakeChannel channel;
  channel.refuses = true;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(channel.out().room(8));
    fill(channel.out(), 8, static_cast<std::byte>(i));
    channel.out().flush();
  }
  EXPECT_TRUE(channel.frames.empty());
  channel.refuses = false;
  channel.out().flush();
  const auto records = channel.records();
  ASSERT_EQ(records.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(records[i].payload[0], static_cast<std::byte>(i));
}

TEST(OfiSendBuffer, TheTerminateMessageIsTheLast) {
  FakeChannel channel;
  ASSERT_TRUE(channel.out().room(8));
  fill(channel.out(), 8, std::byte{1});
  channel.out().send_terminate(head_of(RecordKind::end, 0));
  EXPECT_FALSE(channel.out().terminate_sent());
  channel.out().flush();
  EXPECT_TRUE(channel.out().terminate_sent());
  EXPECT_FALSE(channel.out().room(0));
  channel.out().flush();
  const auto records = channel.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].kind(), RecordKind::end);
}

TEST(OfiSendBuffer, AProbeIsAFrameOfItsOwnIfNothingElseLeaves) {
  FakeChannel channel;
  channel.out().probe();
  ASSERT_EQ(channel.frames.size(), 1u);
  EXPECT_EQ(FrameReader::open(channel.frames[0])->head().flags, wire::ofi::kFlagProbe);
  channel.out().report_soon();
  channel.out().flush();
  ASSERT_EQ(channel.frames.size(), 2u);
  EXPECT_EQ(FrameReader::open(channel.frames[1])->head().flags, 0);
}

// Both send as much as they may, and read now and then: all of it arrives.
TEST(OfiSendBuffer, TwoEndsThatOnlySendDoNotWaitForEachOtherForEver) {
  base::Random random(base::seed_from_environment(61));
  std::array<FakeChannel, 2> channels;
  std::array<std::uint32_t, 2> added{};
  std::array<std::uint32_t, 2> came{};
  constexpr std::uint32_t kRecords = 20'000;
  for (std::uint64_t turn = 0; came[0] < kRecords || came[1] < kRecords; ++turn) {
    ASSERT_LT(turn, 10'000'000u);
    const std::size_t side = random.below(2);
    FakeChannel& channel = channels[side];
    FakeChannel& other = channels[1 - side];
    for (std::uint64_t i = random.below(40); i != 0 && added[side] < kRecords; --i) {
      const auto wanted = static_cast<std::uint32_t>(random.below(3000));
      const auto room = channel.out().room(wanted);
      if (!room) break;
      ASSERT_LE(*room, wanted);
      fill(channel.out(), *room, std::byte{1});
      ++added[side];
    }
    channel.out().flush();
    channel.leave();
    const std::size_t reads = std::min<std::size_t>(other.frames.size(), random.below(17));
    for (std::size_t i = 0; i < reads; ++i) {
      auto reader = FrameReader::open(other.frames[i]);
      ASSERT_TRUE(reader && channel.out().peer_took(reader->head().taken));
      for (; !reader->at_end(); ++came[1 - side]) ASSERT_TRUE(reader->next());
      ASSERT_TRUE(channel.out().took());
    }
    other.frames.erase(other.frames.begin(),
                       other.frames.begin() + static_cast<std::ptrdiff_t>(reads));
    ASSERT_LE(channels[0].frames.size(), kFrames);
    ASSERT_LE(channels[1].frames.size(), kFrames);
  }
}

TEST(OfiRecordReader, RefusesWhatIsNoFrame) {
  const auto frame = FrameByHand(1, 2).add(RecordKind::send, std::vector<std::byte>(5)).bytes();
  auto reader = FrameReader::open(frame);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->head().taken, 1u);
  EXPECT_EQ(reader->next()->payload.size(), 5u);
  EXPECT_TRUE(reader->at_end());
  for (std::size_t bytes = 0; bytes < frame.size(); ++bytes) {
    EXPECT_FALSE(FrameReader::open(std::span(frame).first(bytes))) << bytes;
  }
  for (const std::size_t at : {0u, 4u, 5u, 6u, 7u, 12u}) {
    auto wrong = frame;
    wrong[at] ^= std::byte{0x40};
    EXPECT_FALSE(FrameReader::open(wrong)) << at;
  }
  // A length beyond the frame, and half a record.
  auto wrong = frame;
  wrong[sizeof(wire::ofi::FrameHead) + 4] = std::byte{9};
  EXPECT_FALSE(FrameReader::open(wrong)->next());
  auto half = FrameByHand().bytes();
  half.resize(half.size() + 8);
  half[0] = static_cast<std::byte>(half.size());
  EXPECT_FALSE(FrameReader::open(half)->next());
  EXPECT_FALSE(FrameReader::open(std::vector<std::byte>(wire::ofi::kFrameBytesMax + 8)));
}

}  // namespace
}  // namespace espalier::fabric::ofi
