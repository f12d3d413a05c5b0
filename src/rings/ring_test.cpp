// SPDX-License-Identifier: Apache-2.0
#include "rings/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>

#include "base/random.hpp"
#include "rings/message_reader.hpp"
#include "rings/testing/ring_memory.hpp"
#include "wire/message.hpp"

namespace espalier::rings {
namespace {

/// A message of so many bytes, each of which depends on the message's number and its offset.
std::string make_message(std::uint32_t bytes, std::uint64_t number) {
  std::string message(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) message[i] = static_cast<char>(number * 31 + i * 7);
  wire::RequestHeader header{};
  header.bytes = bytes;
  header.tag = static_cast<std::uint32_t>(number);
  std::memcpy(message.data(), &header, sizeof header);
  return message;
}

/// Both ends of one ring, and what is on its way between them.
class Model {
 public:
  Model(std::uint64_t first, std::uint64_t seed)
      : memory_(std::make_unique<RingMemory>(first)),
        space_(memory_->slots, kSlots, memory_->credit, first),
        reader_(SlotReader(memory_->slots, kSlots, memory_->credit, first),
                wire::kRequestHeaderBytes, share_),
        tail_(first),
        random_(seed) {}

  /// Writes the next message if the ring has room for all of it, or begins to stream it.
  void write(const std::string& message) {
    ASSERT_TRUE(stream_.done());
    const std::uint32_t slots = wire::slots_of(static_cast<std::uint32_t>(message.size()));
    on_its_way_.push_back(message);
    if (space_.room(tail_) < slots && space_.ask_room(tail_) < slots) {
      streamed_ = message;
      stream_ = MessageStream(reinterpret_cast<const std::byte*>(streamed_.data()),
                              static_cast<std::uint32_t>(streamed_.size()), tail_);
      return stream();
    }
    MessageWriter writer(space_, tail_);
    wire::RequestHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    writer.header(wire::words_of(header));
    for (std::size_t at = sizeof header; at < message.size();) {
      const std::size_t now = std::min<std::size_t>(message.size() - at, random_.below(100));
      writer.put(message.data() + at, now);
      at += now;
    }
    const std::uint64_t end = writer.finish();
    ASSERT_EQ(end, tail_ + slots);
    tail_ = end;
    check();
  }
  [[nodiscard]] bool streaming() const { return !stream_.done(); }
  void stream() {
    const std::uint64_t room = space_.ask_room(tail_);
    const std::uint64_t most = std::min<std::uint64_t>(room, random_.below(kSlots + 1));
    ASSERT_LE(stream_.write(space_, most), most);
    tail_ = stream_.slot();
    check();
  }
  /// Reads messages, at most so many.
  void read(std::uint64_t most) {
    MessageBuffer message;
    for (; most != 0 && reader_.take(message) == Taken::message; --most) {
      ASSERT_FALSE(on_its_way_.empty());
      const std::string& expected = on_its_way_.front();
      const std::size_t bytes =
          base::load_plain<std::uint32_t>(message.data() + offsetof(wire::RequestHeader, bytes));
      ASSERT_EQ(bytes, expected.size());
      // The first word is the slot's own.
      ASSERT_EQ(std::memcmp(message.data() + 4, expected.data() + 4, bytes - 4), 0);
      on_its_way_.pop_front();
    }
    check();
  }
  [[nodiscard]] bool empty() const { return on_its_way_.empty(); }
  [[nodiscard]] std::uint64_t tail() const { return tail_; }

 private:
  void check() {
    const std::uint64_t head = reader_.slots().head();
    const auto credit = base::load_shared<std::uint64_t>(memory_->credit);
    ASSERT_LE(tail_ - head, kSlots) << "an unread slot was overwritten";
    ASSERT_LE(credit, head) << "a slot was counted as read that was not";
    ASSERT_LT(head - credit, kSlots / 4);
    ASSERT_EQ(reader_.slots().has_unpublished_head(), head != credit);
    ASSERT_LE(space_.room(tail_), kSlots);
  }

  std::unique_ptr<RingMemory> memory_;
  MessageShare share_;
  SlotSpace space_;
  MessageReader reader_;
  std::uint64_t tail_;
  base::Random random_;
  std::deque<std::string> on_its_way_;
  std::string streamed_;
  MessageStream stream_;
};

void run_all_lengths(std::uint64_t first, std::uint64_t seed, std::uint64_t rounds) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", first slot " << first);
  base::Random random(seed);
  Model model(first, seed);
  std::uint64_t number = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::uint32_t bytes = 32; bytes <= 1000; ++bytes) {
      ASSERT_NO_FATAL_FAILURE(model.write(make_message(bytes, ++number)));
      while (model.streaming()) {
        ASSERT_NO_FATAL_FAILURE(model.read(random.below(3)));
        ASSERT_NO_FATAL_FAILURE(model.stream());
      }
      // Pauses, and sometimes drains everything.
      const std::uint64_t most = random.below(3) == 0 ? 0 : random.below(5);
      ASSERT_NO_FATAL_FAILURE(model.read(most));
    }
  }
  ASSERT_NO_FATAL_FAILURE(model.read(~std::uint64_t{0}));
  EXPECT_TRUE(model.empty());
}

TEST(Ring, CarriesMessagesOfAllLengths) { run_all_lengths(0, base::seed_from_environment(1), 5); }

TEST(Ring, SequenceWordsWrapRoundAt32Bits) {
  const std::uint64_t seed = base::seed_from_environment(2);
  const std::uint64_t wrap = std::uint64_t{1} << 32;
  for (const std::uint64_t before : {1u, 2u, 63u, 64u, 65u, 1000u}) {
    run_all_lengths(wrap - before, seed + before, 1);
  }
  run_all_lengths((std::uint64_t{7} << 32) - 1, seed, 1);
}

TEST(Ring, ANewRingHasNothingToRead) {
  RingMemory memory;
  const SlotReader reader(memory.slots, kSlots, memory.credit);
  EXPECT_FALSE(reader.ready());
  EXPECT_FALSE(reader.has_unpublished_head());
}

TEST(Ring, ALineOfAnotherLapIsNotReady) {
  RingMemory memory;
  SlotReader reader(memory.slots, kSlots, memory.credit);
  for (const std::uint64_t other : {std::uint64_t{1}, std::uint64_t{kSlots},
                                    std::uint64_t{2} * kSlots, std::uint64_t{1} << 31}) {
    base::store_plain(memory.slots, wire::sequence_of(other));
    EXPECT_FALSE(reader.ready()) << other;
  }
  base::store_plain(memory.slots, wire::sequence_of(0));
  EXPECT_TRUE(reader.ready());
}

TEST(Ring, AQuarterIsReadBeforeTheWriterIsTold) {
  RingMemory memory;
  SlotReader reader(memory.slots, kSlots, memory.credit);
  SlotSpace space(memory.slots, kSlots, memory.credit);
  std::byte slot[wire::kRingSlotBytes];
  for (std::uint64_t n = 0; n < 3 * kSlots; ++n) {
    space.publish(n);
    ASSERT_TRUE(reader.ready());
    reader.take(slot);
    ASSERT_EQ(base::load_shared<std::uint64_t>(memory.credit), (n + 1) / (kSlots / 4) * 16);
  }
  EXPECT_FALSE(reader.has_unpublished_head());
  space.publish(3 * kSlots);
  reader.take(slot);
  EXPECT_TRUE(reader.has_unpublished_head());
  reader.publish_head();
  EXPECT_EQ(base::load_shared<std::uint64_t>(memory.credit), 3 * kSlots + 1u);
}

TEST(Ring, CreditsThatCannotBeTrueAreNotTaken) {
  RingMemory memory;
  SlotSpace space(memory.slots, kSlots, memory.credit);
  const auto say = [&](std::uint64_t credit) { base::store_shared(memory.credit, credit); };
  EXPECT_EQ(space.ask_room(0), kSlots);
  say(1);  // nothing was written yet
  EXPECT_EQ(space.ask_room(0), kSlots);
  say(~std::uint64_t{0});
  EXPECT_EQ(space.ask_room(kSlots), 0u);
  say(kSlots + 1);
  EXPECT_EQ(space.ask_room(kSlots), 0u);
  say(10);
  EXPECT_EQ(space.ask_room(kSlots), 10u);
  say(3);  // taken back
  EXPECT_EQ(space.ask_room(kSlots), 10u);
  say(kSlots);
  EXPECT_EQ(space.ask_room(kSlots), kSlots);
}

TEST(Ring, WhateverTheCreditSaysAWriterNeverHasMoreRoomThanTheRing) {
  const std::uint64_t seed = base::seed_from_environment(3);
  SCOPED_TRACE(testing::Message() << "repeat with ESPALIER_SEED=" << seed);
  base::Random random(seed);
  RingMemory memory;
  SlotSpace space(memory.slots, kSlots, memory.credit);
  std::uint64_t tail = 0;
  std::uint64_t believed = 0;  // the highest credit that could be true when it was looked at
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t credit = random.below(4) == 0 ? random() : tail + random.below(8) - 4;
    base::store_shared(memory.credit, credit);
    if (credit <= tail) believed = std::max(believed, credit);
    const std::uint64_t room = space.ask_room(tail);
    ASSERT_EQ(room, believed + kSlots - tail);
    ASSERT_LE(room, kSlots);
    tail += random.below(room + 1);
  }
}

TEST(Ring, AStreamGoesAsFarAsThereIsRoom) {
  RingMemory memory;
  SlotSpace space(memory.slots, kSlots, memory.credit);
  const std::string message = make_message(64 + 60 * 9 + 1, 1);  // 11 slots
  MessageStream stream(reinterpret_cast<const std::byte*>(message.data()),
                       static_cast<std::uint32_t>(message.size()), 5);
  EXPECT_EQ(stream.write(space, 0), 0u);
  EXPECT_EQ(stream.write(space, 4), 4u);
  EXPECT_EQ(stream.slot(), 9u);
  EXPECT_FALSE(stream.done());
  EXPECT_EQ(stream.write(space, 100), 7u);
  EXPECT_TRUE(stream.done());
  EXPECT_EQ(stream.slot(), 16u);
  EXPECT_EQ(stream.write(space, 100), 0u);
  EXPECT_TRUE(MessageStream{}.done());
}

TEST(Ring, CopiesOfFewBytesAreExact) {
  for (std::size_t bytes = 0; bytes <= 80; ++bytes) {
    std::byte from[80];
    std::byte to[96] = {};
    for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i + 1);
    copy_few(to + 8, from, bytes);
    EXPECT_EQ(std::memcmp(to + 8, from, bytes), 0) << bytes;
    EXPECT_EQ(to[7], std::byte{0});
    EXPECT_EQ(to[8 + bytes], std::byte{0}) << bytes;
  }
}

}  // namespace
}  // namespace espalier::rings
