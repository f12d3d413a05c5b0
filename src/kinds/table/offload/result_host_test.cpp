// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/result_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "fabric/shm/testing/shm_fixture.hpp"

namespace espalier::offload {
namespace {

using fabric::shm::Connected;
using fabric::shm::Side;

constexpr std::uint32_t kBufferBytes = wire::kResultBufferBytesMin;
constexpr std::uint32_t kBuffers = 3;
constexpr std::size_t kBlock = kBufferBytes / 4;

/// A client with a region, and the node's end of its pair.
class ResultHosts : public ::testing::Test {
 protected:
  ResultHosts()
      : memory_(*memory::SharedMemory::create("results", kBuffers * kBufferBytes)),
        region_(offer_region()) {}
  fabric::Registration offer_region() {
    return *two_.client.table->offer({memory_.at(0), memory_.bytes(), memory_.descriptor(), 0},
                                     fabric::RemoteRights::write);
  }
  [[nodiscard]] wire::ResultOffer good_offer() const {
    return {region_.remote().base, kBufferBytes, kBuffers, region_.remote().key, 0};
  }
  [[nodiscard]] fabric::QueuePair& pair() const { return *two_.target.pair; }
  /// Hands completions on until all WRITEs have ended, or the pair has.
  void end_writes() {
    until(two_.client, two_.target, [&] {
      while (const auto completion = two_.target.take(two_.target.sends)) {
        EXPECT_TRUE(SessionParts::is_of_part(completion->work_id));
        host_.completed(*completion);
      }
      return host_.writes() == 0 || pair().state() == fabric::QueuePair::State::error;
    });
    while (const auto completion = two_.target.take(two_.target.sends)) {
      host_.completed(*completion);
    }
  }
  static std::vector<std::byte> block(std::uint8_t fill) {
    return std::vector<std::byte>(kBlock, std::byte{fill});
  }
  [[nodiscard]] bool lies_at(std::size_t offset, std::uint8_t fill) const {
    return std::all_of(memory_.at(offset), memory_.at(offset) + kBlock,
                       [&](std::byte byte) { return byte == std::byte{fill}; });
  }
  [[nodiscard]] Code given_back(std::vector<std::uint32_t> buffers, std::uint32_t ring = 0) {
    const auto given = host_.give_back(ring, buffers);
    return given ? Code::invalid : given.error().code;
  }

  Connected two_;
  memory::SharedMemory memory_;
  fabric::Registration region_;
  ResultHost host_{2};
};

TEST_F(ResultHosts, OffersThatCannotBeAreRefused) {
  const auto refused = [&](auto change) {
    wire::ResultOffer offer = good_offer();
    change(offer);
    const auto opened = host_.open(0, offer);
    return !opened && opened.error().code == Code::invalid_argument && host_.find(0) == nullptr;
  };
  EXPECT_TRUE(refused([](auto& offer) { offer.buffers = 0; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffers = wire::kResultBuffersMax + 1; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffers = ~std::uint32_t{0}; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffer_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffer_bytes -= 8; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffer_bytes += 4; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.buffer_bytes = wire::kResultBufferBytesMax + 8; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.base += 4; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.base = ~std::uint64_t{7}; }));
  EXPECT_TRUE(refused([](auto& offer) { offer.reserved = 1; }));
  ASSERT_TRUE(host_.open(0, good_offer()));
  EXPECT_NE(host_.find(0), nullptr);
  EXPECT_EQ(host_.find(1), nullptr);  // another ring has its own
}

TEST_F(ResultHosts, BlocksFillBuffersAndBuffersComeBack) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  ResultWriter writer(host_, host_.find(0), kBlock);
  EXPECT_EQ(host_.open(0, good_offer()).error().code, Code::busy);
  std::uint8_t fill = 0;
  std::vector<std::uint32_t> out;
  const auto write = [&] {
    auto from = block(++fill);
    const auto place = writer.write(from, kBlock);
    if (place && (place->flags & wire::kBufferFull) != 0) out.push_back(place->buffer);
    end_writes();
    if (place) {
      EXPECT_TRUE(lies_at(place->buffer * kBufferBytes + place->offset, fill));
    }
    return place.has_value();
  };
  for (std::uint32_t i = 0; i < 4 * kBuffers; ++i) ASSERT_TRUE(write()) << i;
  EXPECT_FALSE(write());
  ASSERT_EQ(out, (std::vector<std::uint32_t>{0, 1, 2}));
  // What comes back is the client's to give, once, and all of it or nothing.
  EXPECT_EQ(given_back({1, kBuffers}), Code::invalid_argument);
  EXPECT_EQ(given_back({~std::uint32_t{0}}), Code::invalid_argument);
  EXPECT_EQ(given_back({1, 1}), Code::invalid_argument);
  EXPECT_EQ(given_back({1}, 1), Code::not_found);
  EXPECT_FALSE(write());
  EXPECT_EQ(given_back({1}), Code::invalid);
  EXPECT_EQ(given_back({1}), Code::invalid_argument);
  ASSERT_TRUE(write());
  EXPECT_EQ(given_back({1}), Code::invalid_argument);  // it is being filled
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write());
  EXPECT_FALSE(write());
  EXPECT_EQ(out, (std::vector<std::uint32_t>{0, 1, 2, 1}));
}

TEST_F(ResultHosts, AllBuffersAreTheNodesAfterARun) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  for (int run = 0; run < 3; ++run) {
    ResultWriter writer(host_, host_.find(0), kBlock);
    for (std::uint32_t i = 0; i < 4 * kBuffers; ++i) {
      auto from = block(9);
      ASSERT_TRUE(writer.write(from, kBlock));
      end_writes();
    }
  }
  EXPECT_EQ(given_back({0, 1, 2}), Code::invalid);  // too late to matter
  EXPECT_TRUE(host_.open(0, good_offer()));
}

TEST_F(ResultHosts, MemoryIsKeptUntilItsWriteHasEnded) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  {
    ResultWriter writer(host_, host_.find(0), kBlock);
    for (std::size_t i = 0; i < ResultHost::kWritesMax; ++i) {
      auto from = block(static_cast<std::uint8_t>(i + 1));
      ASSERT_TRUE(writer.write(from, kBlock));
      EXPECT_TRUE(from.empty());  // none has ended, so there is none to have for it
    }
    auto more = block(7);
    EXPECT_FALSE(writer.write(more, kBlock));
    EXPECT_EQ(more.size(), kBlock);  // and it was not taken
  }
  end_writes();
  EXPECT_EQ(host_.writes(), 0u);
  EXPECT_EQ(host_.take_spare().size(), kBlock);
  for (std::size_t i = 0; i < ResultHost::kWritesMax; ++i) {
    EXPECT_TRUE(lies_at(i * kBlock, static_cast<std::uint8_t>(i + 1)));
  }
}

TEST_F(ResultHosts, WhatAPairHadNotWrittenTheNextOneDoes) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  ResultWriter writer(host_, host_.find(0), kBlock);
  for (std::uint8_t i = 1; i <= 3; ++i) {
    auto from = block(i);
    ASSERT_TRUE(writer.write(from, kBlock));
  }
  pair().close();
  while (const auto completion = two_.target.take(two_.target.sends)) host_.completed(*completion);
  host_.detach();
  auto early = block(4);
  EXPECT_FALSE(writer.write(early, kBlock));
  const std::size_t left = host_.writes();
  std::fill_n(memory_.at(0), memory_.bytes(), std::byte{0});
  two_.target.pair.reset();
  fabric::shm::connect(two_.client, two_.target, two_.path(), two_.client.options(),
                       two_.target.options());
  host_.attach(pair());
  end_writes();
  EXPECT_EQ(host_.writes(), 0u);
  for (std::size_t i = 3 - left; i < 3; ++i) {
    EXPECT_TRUE(lies_at(i * kBlock, static_cast<std::uint8_t>(i + 1))) << i;
  }
  EXPECT_GT(left, 0u);
}

// Where memory is mapped nothing is copied.
TEST_F(ResultHosts, RowsAreStoredStraightIntoBuffers) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  ResultWriter writer(host_, host_.find(0), kBlock);
  auto from = block(1);
  ASSERT_TRUE(writer.write(from, kBlock));
  end_writes();
  until(two_.client, two_.target, [&] { return writer.maps(); });
  // What is left of the buffer that was begun, then whole ones: all may be in hand at a time.
  EXPECT_EQ(writer.free_buffers(), kBuffers);
  std::vector<ResultRoom> rooms;
  while (const auto room = writer.open_buffer()) rooms.push_back(*room);
  ASSERT_EQ(rooms.size(), kBuffers);
  EXPECT_EQ(writer.free_buffers(), 0u);
  EXPECT_EQ(given_back({0}), Code::invalid_argument);  // none is the client's yet
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    const ResultRoom& room = rooms[i];
    ASSERT_EQ(room.memory.size(), i == 0 ? kBufferBytes - kBlock : kBufferBytes);
    EXPECT_EQ(room.offset, i == 0 ? kBlock : 0);
    std::fill_n(room.memory.begin(), kBlock, std::byte{static_cast<std::uint8_t>(i + 2)});
  }
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    const auto place = writer.close_buffer(rooms[i], kBlock);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->buffer, i);
    EXPECT_EQ(place->offset, i == 0 ? kBlock : 0);
    EXPECT_EQ(place->bytes, kBlock);
    EXPECT_EQ(place->flags, wire::kBufferFull);
    EXPECT_TRUE(lies_at(i * kBufferBytes + place->offset, static_cast<std::uint8_t>(i + 2)));
  }
  EXPECT_TRUE(lies_at(0, 1));
  EXPECT_FALSE(writer.open_buffer());
  EXPECT_EQ(given_back({2}), Code::invalid);
  EXPECT_EQ(writer.free_buffers(), 1u);
  const auto again = writer.open_buffer();
  ASSERT_TRUE(again);
  EXPECT_EQ(again->buffer, 2u);
  EXPECT_EQ(again->memory.size(), kBufferBytes);
  EXPECT_EQ(given_back({2}), Code::invalid_argument);
  // With a revoked key nothing is reported.
  region_.revoke();
  EXPECT_FALSE(writer.close_buffer(*again, kBlock));
  EXPECT_TRUE(writer.broken());
}

TEST_F(ResultHosts, BuffersThatWereOpenAtTheEndServeTheNextRun) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  for (int run = 0; run < 3; ++run) {
    ResultWriter writer(host_, host_.find(0), kBlock);
    until(two_.client, two_.target, [&] { return writer.maps(); });
    ASSERT_EQ(writer.free_buffers(), kBuffers) << run;
    const auto first = writer.open_buffer();
    ASSERT_TRUE(first && writer.open_buffer());
    ASSERT_TRUE(writer.close_buffer(*first, kBlock));
  }
}

TEST_F(ResultHosts, AKeyThatIsNoneEndsThePairAndTheRun) {
  wire::ResultOffer offer = good_offer();
  offer.key ^= 0x10000;
  ASSERT_TRUE(host_.open(0, offer));
  host_.attach(pair());
  ResultWriter writer(host_, host_.find(0), kBlock);
  auto from = block(1);
  ASSERT_TRUE(writer.write(from, kBlock));
  end_writes();
  EXPECT_TRUE(writer.broken());
  host_.detach();
  EXPECT_EQ(host_.writes(), 0u);
}

TEST_F(ResultHosts, AKeyThatWasRevokedEndsThePairAndTheRun) {
  ASSERT_TRUE(host_.open(0, good_offer()));
  host_.attach(pair());
  ResultWriter writer(host_, host_.find(0), kBlock);
  auto from = block(1);
  ASSERT_TRUE(writer.write(from, kBlock));
  end_writes();
  EXPECT_TRUE(lies_at(0, 1));
  region_.revoke();
  std::fill_n(memory_.at(0), memory_.bytes(), std::byte{0});
  from = block(2);
  ASSERT_TRUE(writer.write(from, kBlock));
  end_writes();
  EXPECT_TRUE(writer.broken());
  EXPECT_TRUE(lies_at(kBlock, 0));
}

}  // namespace
}  // namespace espalier::offload
