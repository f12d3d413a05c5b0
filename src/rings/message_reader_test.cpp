// SPDX-License-Identifier: Apache-2.0
#include "rings/message_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "rings/testing/ring_client.hpp"

namespace espalier::rings {
namespace {

constexpr std::uint32_t kRequestSlots = 64;

class MessageReaderTest : public testing::Test {
 protected:
  /// Puts a message into the ring, all of it: so it must be short enough.
  void send(const std::string& message) {
    MessageStream stream(reinterpret_cast<const std::byte*>(message.data()),
                         static_cast<std::uint32_t>(message.size()), tail_);
    stream.write(space_, space_.ask_room(tail_));
    ASSERT_TRUE(stream.done());
    tail_ = stream.slot();
  }
  /// The first slot of a message that says to be so long.
  void send_claim(std::uint32_t bytes) {
    wire::RequestHeader header = request_of(wire::OffloadId::noop, 0, 77);
    header.bytes = bytes;
    send(bytes_of(header));
  }
  Taken take() { return reader_.take(message_); }
  [[nodiscard]] static std::string text(const MessageBuffer& message, std::size_t bytes) {
    return {reinterpret_cast<const char*>(message.data()) + 4, bytes - 4};
  }
  [[nodiscard]] std::string text(std::size_t bytes) const { return text(message_, bytes); }

  alignas(64) std::byte slots_[kRequestSlots * wire::kRingSlotBytes] = {};
  alignas(64) std::byte credit_[8] = {};
  MessageBudget budget_{2000};
  MessageShare share_{budget_};
  SlotSpace space_{slots_, kRequestSlots, credit_};
  MessageReader reader_{SlotReader(slots_, kRequestSlots, credit_), wire::kRequestHeaderBytes,
                        share_};
  MessageBuffer message_;
  std::uint64_t tail_ = 0;
};

TEST_F(MessageReaderTest, TakesMessagesOfEveryLengthAndTheirMemoryComesBack) {
  for (std::size_t payload = 0; payload < 900; ++payload) {
    const std::string sent =
        message_of(request_of(wire::OffloadId::noop), {}, std::string(payload, 'p'));
    send(sent);
    ASSERT_TRUE(reader_.ready());
    ASSERT_EQ(take(), Taken::message) << payload;
    ASSERT_EQ(text(sent.size()), sent.substr(4));
    ASSERT_EQ(budget_.used(), sent.size() <= MessageBuffer::kInPlace ? 0 : sent.size());
    ASSERT_EQ(take(), Taken::nothing);
  }
  message_.clear();
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(MessageReaderTest, AMessageThatComesLineByLineIsTakenWithItsLast) {
  const std::string sent =
      message_of(request_of(wire::OffloadId::put), "key", std::string(500, 'v'));
  MessageStream stream(reinterpret_cast<const std::byte*>(sent.data()),
                       static_cast<std::uint32_t>(sent.size()), 0);
  while (stream.write(space_, 1), !stream.done()) ASSERT_EQ(take(), Taken::nothing);
  ASSERT_EQ(take(), Taken::message);
  EXPECT_EQ(text(sent.size()), sent.substr(4));
}

TEST_F(MessageReaderTest, WhatTheBudgetRefusesIsReadToItsEndAndTheNextIsTaken) {
  const std::string big =
      message_of(request_of(wire::OffloadId::put, 3, 42), "key", std::string(1500, 'v'));
  send(big);
  ASSERT_EQ(take(), Taken::refused);
  EXPECT_EQ(text(60), big.substr(4, 56));
  EXPECT_EQ(budget_.used(), 0u);
  const std::string small = message_of(request_of(wire::OffloadId::noop, 0, 43));
  send(small);
  ASSERT_EQ(take(), Taken::message);
  EXPECT_EQ(text(32), small.substr(4));
  const std::string fits =
      message_of(request_of(wire::OffloadId::put, 3, 44), "key", std::string(900, 'v'));
  send(fits);
  EXPECT_EQ(take(), Taken::message);
}

TEST_F(MessageReaderTest, LengthsThatCannotBeBreakTheRing) {
  for (const std::uint32_t bytes :
       {0u, 1u, 31u, wire::kMessageBytesMax + 1, 0x8000'0000u, 0xFFFF'FFE0u, 0xFFFF'FFFFu}) {
    send_claim(bytes);
    EXPECT_EQ(take(), Taken::broken) << bytes;
  }
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(MessageReaderTest, TheLongestMessageIsTakenOrRefusedAndNeverBroken) {
  send_claim(wire::kMessageBytesMax);
  EXPECT_EQ(take(), Taken::nothing);
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(MessageReaderTest, WhoClaimsMuchAndSendsLittleGetsLittle) {
  MessageBudget budget(std::uint64_t{1} << 30);
  MessageShare share(budget);
  MessageReader reader(SlotReader(slots_, kRequestSlots, credit_), wire::kRequestHeaderBytes,
                       share);
  MessageBuffer message;  // ends before the share of which its memory is
  constexpr std::uint32_t kBytes = 1u << 20;
  const std::string sent =
      message_of(request_of(wire::OffloadId::put), "key", std::string(kBytes - 35, 'v'));
  MessageStream stream(reinterpret_cast<const std::byte*>(sent.data()), kBytes, 0);
  std::uint64_t come = 0;
  while (!stream.done()) {
    come += std::uint64_t{stream.write(space_, space_.ask_room(stream.slot()))} * 60;
    const Taken taken = reader.take(message);
    ASSERT_EQ(taken, stream.done() ? Taken::message : Taken::nothing);
    ASSERT_LE(budget.used(), std::max<std::uint64_t>(4096, 4 * come + 16));
  }
  EXPECT_EQ(text(message, kBytes), sent.substr(4));
  EXPECT_EQ(share.used(), kBytes);
}

TEST_F(MessageReaderTest, AReaderThatEndsInTheMiddleOfAMessageGivesItsMemoryBack) {
  {
    MessageReader reader(SlotReader(slots_, kRequestSlots, credit_), wire::kRequestHeaderBytes,
                         share_);
    const std::string sent =
        message_of(request_of(wire::OffloadId::put), "key", std::string(665, 'v'));
    MessageStream stream(reinterpret_cast<const std::byte*>(sent.data()), 700, 0);
    stream.write(space_, 8);
    EXPECT_EQ(reader.take(message_), Taken::nothing);
    EXPECT_EQ(budget_.used(), 700u);
  }
  EXPECT_EQ(budget_.used(), 0u);
}

// However long it gets, what has come is copied while that is short, and the share pays for no more
// than has room.
TEST_F(MessageReaderTest, OfALongMessageWhatHasComeStaysWhereItIs) {
  constexpr std::uint32_t kWhole = wire::kMessageBytesMax;
  MessageBudget budget(std::uint64_t{1} << 30);
  MessageShare share(budget);
  MessageBuffer message;
  ASSERT_TRUE(message.grow(MessageBuffer::kReserved, 0, kWhole, share));
  const std::byte* const at = message.data();
  message.data()[MessageBuffer::kReserved - 1] = std::byte{7};
  for (std::uint32_t bytes = 4 * MessageBuffer::kReserved; bytes < kWhole; bytes *= 4) {
    ASSERT_TRUE(message.grow(bytes, bytes / 4, kWhole, share));
    EXPECT_EQ(message.data(), at);
    EXPECT_EQ(message.capacity(), bytes);
    EXPECT_EQ(share.used(), bytes);
  }
  EXPECT_EQ(message.data()[MessageBuffer::kReserved - 1], std::byte{7});
  message.clear();
  EXPECT_EQ(share.used(), 0u);
}

TEST_F(MessageReaderTest, BuffersMoveWithTheirMemory) {
  MessageBuffer from;
  ASSERT_TRUE(from.grow(700, 0, 700, share_));
  from.data()[699] = std::byte{9};
  MessageBuffer to;
  ASSERT_TRUE(to.grow(200, 0, 200, share_));
  to = std::move(from);
  EXPECT_EQ(to.data()[699], std::byte{9});
  EXPECT_EQ(budget_.used(), 700u);
  MessageBuffer small;
  ASSERT_TRUE(small.grow(256, 0, 256, share_));
  small.data()[255] = std::byte{5};
  to = std::move(small);
  EXPECT_EQ(to.data()[255], std::byte{5});
  EXPECT_EQ(budget_.used(), 0u);
}

}  // namespace
}  // namespace espalier::rings
