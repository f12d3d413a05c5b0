// SPDX-License-Identifier: Apache-2.0
// Peers that do not keep to the protocol: what they send ends their own connection, and
// nothing else.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "fabric/shm/testing/raw_peer.hpp"

namespace espalier::fabric::shm {
namespace {

using memory::Descriptor;
using memory::SharedMemory;

TEST(ShmHostileConcurrency, PacketsThatCannotBeEndTheConnection) {
  base::Random random(base::seed_from_environment(32));
  wire::FabricAnswer unasked{};
  unasked.packet = static_cast<std::uint32_t>(wire::FabricPacket::answer);
  unasked.key = 5;
  const wire::FabricNote unknown{77, 0};
  wire::FabricHello again{};
  again.packet = static_cast<std::uint32_t>(wire::FabricPacket::hello);
  std::vector<std::byte> noise(300);
  random.fill(noise);
  const std::span<const std::byte> packets[] = {packet_of(unasked), packet_of(unknown),
                                                packet_of(again), std::span(noise),
                                                std::span(noise).first(1)};
  for (const auto packet : packets) {
    Raw raw;
    raw.join();
    const int own[] = {raw.table->words().descriptor()};
    ASSERT_TRUE(memory::send_packet(raw.socket.number(), packet, own));
    raw.wait_for_the_end();
    EXPECT_EQ(raw.target.pair->ended_by(), Status::retry_exceeded);
    raw.expect_hung_up();
    raw.expect_others_are_served();
  }
}

TEST(ShmHostileConcurrency, HelloesThatCannotBeAreNotHeard) {
  wire::FabricHello good{};
  good.packet = static_cast<std::uint32_t>(wire::FabricPacket::hello);
  good.format = wire::kFabricFormat;
  good.magic = wire::kFabricMagic;
  wire::FabricHello magic = good;
  magic.magic ^= 1;
  wire::FabricHello format = good;
  format.format = 99;
  wire::FabricHello data = good;
  data.data_bytes = 57;
  const auto small = *SharedMemory::create("small", 4096);
  const Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.number(), 1 << 20), 0);
  const auto table = *RegionTable::create();
  struct Case {
    wire::FabricHello hello;
    std::vector<int> descriptors;
  };
  const std::vector<int> words{table->words().descriptor()};
  const Case cases[] = {{magic, words},
                        {format, words},
                        {data, words},
                        {good, {}},
                        {good, {small.descriptor()}},
                        {good, {unsealed.number()}},
                        {good, {0}}};
  for (const Case& one : cases) {
    Raw raw;
    ASSERT_TRUE(memory::send_packet(raw.socket.number(), packet_of(one.hello), one.descriptors));
    raw.expect_hung_up();
    EXPECT_FALSE(raw.target.endpoint->next_request());
    raw.expect_others_are_served();
  }
}

TEST(ShmHostileConcurrency, QuestionsForAnyKeyAreAnswered) {
  base::Random random(base::seed_from_environment(33));
  Raw raw;
  raw.join();
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(send_ask(raw.socket.number(), static_cast<RegionKey>(random())));
    wire::FabricAnswer answer;
    Descriptor descriptors[2];
    const auto got = memory::receive_packet(
        raw.socket.number(), std::as_writable_bytes(std::span(&answer, 1)), descriptors);
    ASSERT_EQ(*got, sizeof answer);
    ASSERT_EQ(answer.status, static_cast<std::uint32_t>(Status::remote_access));
    ASSERT_FALSE(descriptors[0]);
  }
}

TEST(ShmHostileConcurrency, WhoAsksAndDoesNotReadIsHungUpOn) {
  Raw raw;
  raw.join();
  while (true) {
    const auto sent = send_ask(raw.socket.number(), 5);
    if (!sent && sent.error().detail != EAGAIN) break;
    std::this_thread::yield();
  }
  raw.wait_for_the_end();
  raw.expect_others_are_served();
}

TEST(ShmHostileConcurrency, WelcomesThatCannotBeEndTheConnection) {
  const auto table = *RegionTable::create();
  const auto channel = *SharedMemory::create("channel", wire::fabric_channel_bytes(kSlots));
  wire::FabricWelcome good{};
  good.packet = static_cast<std::uint32_t>(wire::FabricPacket::welcome);
  good.format = wire::kFabricFormat;
  good.magic = wire::kFabricMagic;
  good.ring_slots = kSlots;
  wire::FabricWelcome odd = good;
  odd.ring_slots = 63;
  wire::FabricWelcome many = good;
  many.ring_slots = wire::kFabricSlotsMax;
  wire::FabricWelcome none = good;
  none.ring_slots = 0;
  wire::FabricWelcome data = good;
  data.data_bytes = 185;
  struct Case {
    wire::FabricWelcome welcome;
    std::vector<int> descriptors;
  };
  const std::vector<int> both{channel.descriptor(), table->words().descriptor()};
  const Case cases[] = {{odd, both},
                        {many, both},
                        {none, both},
                        {data, both},
                        {good, both},  // its memory does not begin as it should
                        {good, {}},
                        {good, {channel.descriptor()}},
                        {good, {table->words().descriptor(), 0}}};
  for (const Case& one : cases) {
    RawTarget raw;
    ASSERT_TRUE(memory::send_packet(raw.socket.number(), packet_of(one.welcome), one.descriptors));
    raw.wait_for_the_end();
    EXPECT_EQ(raw.client.pair->ended_by(), Status::retry_exceeded);
  }
}

// Two are as many as this listener keeps waiting; the third tries until there is room.
TEST(ShmHostileConcurrency, AListenerThatLetsNobodyInKeepsNobodyWaiting) {
  RawTarget raw;
  EXPECT_EQ(::listen(raw.listening.number(), 0), 0);
  Side second;
  Side third;
  second.pair = *second.endpoint->connect(raw.path(), second.options(), {});
  third.pair = *third.endpoint->connect(raw.path(), third.options(), {});
  for (int i = 0; i < 100; ++i) third.endpoint->progress();
  EXPECT_EQ(third.pair->state(), QueuePair::State::connecting);
  const Descriptor of_second(::accept4(raw.listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(::fcntl(raw.listening.number(), F_SETFL, O_NONBLOCK), 0);
  Descriptor of_third;
  until(second, third, [&] {
    of_third = Descriptor(::accept4(raw.listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!of_third) third.endpoint->wait(1'000'000);
    return static_cast<bool>(of_third);
  });
  of_third.close();
  until(second, third, [&] { return third.pair->state() == QueuePair::State::error; });
  EXPECT_EQ(third.pair->ended_by(), Status::retry_exceeded);
}

/// A good client is welcomed by hand by a target whose keys stand in `words`.
struct WelcomedByHand {
  WelcomedByHand() {
    wire::FabricWelcome welcome{};
    welcome.packet = static_cast<std::uint32_t>(wire::FabricPacket::welcome);
    welcome.format = wire::kFabricFormat;
    welcome.magic = wire::kFabricMagic;
    welcome.ring_slots = kSlots;
    const int both[] = {channel.descriptor(), words.descriptor()};
    EXPECT_TRUE(memory::send_packet(raw.socket.number(), packet_of(welcome), both));
    until(raw.client, raw.client,
          [&] { return raw.client.pair->state() == QueuePair::State::connected; });
  }
  void set_word(RegionKey key, RegionKey word) const {
    base::store_shared(words.at((key & 0xFFFF) * 4), word);
  }
  void post(RegionKey key, std::uint64_t remote) {
    raw.client.pair->post(WorkRequest::read(1, into, key, remote));
  }
  /// Waits for the request first: only then is an answer expected.
  void answer(const wire::FabricAnswer& said, std::span<const int> descriptors) const {
    std::array<std::byte, 300> packet;
    Descriptor got_descriptors[2];
    for (std::size_t got = 0; got != sizeof(wire::FabricNote);) {
      got = *memory::receive_packet(raw.socket.number(), packet, got_descriptors);
    }
    EXPECT_TRUE(memory::send_packet(raw.socket.number(), packet_of(said), descriptors));
  }
  /// How the request that was posted ends.
  Status end() {
    std::optional<Completion> completion;
    until(raw.client, raw.client,
          [&] { return (completion = raw.client.take(raw.client.sends)).has_value(); });
    return completion->status;
  }

  SharedMemory words = *SharedMemory::create("words", RegionTable::kRegionsMax * 4);
  PieceRings channel = *PieceRings::create(kSlots);
  RawTarget raw;
  std::array<std::byte, 8> into{};
};

TEST(ShmHostileConcurrency, AnswersOfVoidKeysThatCannotBeEndTheConnection) {
  const auto region = *SharedMemory::create("region", 4096);
  const RegionKey key = 0x10003;
  const auto answer = [&](std::uint32_t status, std::uint32_t rights, std::uint64_t bytes,
                          std::uint64_t offset) {
    return wire::FabricAnswer{6, key, status, rights, 0, bytes, offset};
  };
  wire::FabricAnswer other = answer(0, 1, 4096, 0);
  other.key = 0x20003;
  const wire::FabricAnswer answers[] = {answer(1, 1, 4096, 0),
                                        answer(0, 0, 4096, 0),
                                        answer(0, 8, 4096, 0),
                                        answer(0, 1, 0, 0),
                                        answer(0, 1, 4096, 1),
                                        answer(0, 1, 4096, 0),
                                        other};
  for (const wire::FabricAnswer& bad : answers) {
    WelcomedByHand hand;
    hand.set_word(key, void_word(key));
    hand.post(key, 0);
    // One that is good is so only without memory.
    const int own[] = {region.descriptor()};
    const bool good = bad.status == 0 && bad.rights == 1 && bad.bytes == 4096 &&
                      bad.descriptor_offset == 0 && bad.key == key;
    hand.answer(bad, good ? std::span<const int>(own) : std::span<const int>());
    hand.raw.wait_for_the_end();
    EXPECT_EQ(hand.end(), Status::retry_exceeded);
  }
}

// A target that takes its word back is asked again, and what it says then counts.
TEST(ShmHostileConcurrency, AKeyIsVoidOnlyWhileItsWordSaysSo) {
  const auto region = *SharedMemory::create("region", 4096);
  const RegionKey key = 0x10003;
  const wire::FabricAnswer is_void{6, key, 0, 1, 64, ~std::uint64_t{0}, 0};
  *region.at(0) = std::byte{5};
  WelcomedByHand hand;
  hand.set_word(key, void_word(key));
  hand.into.fill(std::byte{1});
  hand.post(key, 72);
  hand.answer(is_void, {});
  EXPECT_EQ(hand.end(), Status::success);
  EXPECT_EQ(hand.into, (std::array<std::byte, 8>{}));
  hand.set_word(key, key);
  hand.post(key, 64);
  const int own[] = {region.descriptor()};
  hand.answer({4, key, 0, 1, 64, 4096, 0}, own);
  EXPECT_EQ(hand.end(), Status::success);
  EXPECT_EQ(hand.into[0], std::byte{5});
  hand.set_word(key, void_word(key));
  hand.post(key, 64);
  EXPECT_EQ(hand.end(), Status::success);
  EXPECT_EQ(hand.into[0], std::byte{0});
  // Another word is none.
  hand.set_word(key, void_word(key) ^ 1);
  hand.post(key, 64);
  EXPECT_EQ(hand.end(), Status::remote_access);
}

TEST(ShmHostileConcurrency, AnswersThatCannotBeEndTheConnection) {
  const auto region = *SharedMemory::create("region", 4096);
  const RegionKey key = 0x10003;
  const auto answer = [&](std::uint32_t rights, std::uint64_t bytes, std::uint64_t offset) {
    return wire::FabricAnswer{4, key, 0, rights, 0, bytes, offset};
  };
  wire::FabricAnswer other = answer(1, 4096, 0);
  other.key = 0x20003;
  const wire::FabricAnswer answers[] = {answer(0, 4096, 0),
                                        answer(8, 4096, 0),
                                        answer(wire::kFabricPersistent, 4096, 0),
                                        answer(3 | wire::kFabricPastCache << 1, 4096, 0),
                                        answer(1, 0, 0),
                                        answer(1, 4097, 0),
                                        answer(1, 4096, 1),
                                        answer(1, ~std::uint64_t{0}, 4096),
                                        answer(1, 4096, ~std::uint64_t{0} - 4095),
                                        answer(1, 1, std::uint64_t{1} << 46),
                                        other};
  for (const wire::FabricAnswer& bad : answers) {
    WelcomedByHand hand;
    hand.set_word(key, key);
    hand.post(key, 0);
    const int own[] = {region.descriptor()};
    hand.answer(bad, own);
    hand.raw.wait_for_the_end();
    const Status completion = hand.end();
    EXPECT_TRUE(completion == Status::retry_exceeded || completion == Status::remote_operation);
  }
}

// Memory without pages costs a hostile target nothing, however long it is; us it costs addresses.
TEST(ShmHostileConcurrency, MemoryLongerThanMayBeMappedIsNot) {
  constexpr std::uint64_t kBytes = 2 * MappingCache::kBytesMax;
  Descriptor sparse(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sparse.number(), kBytes), 0);
  ASSERT_EQ(::fcntl(sparse.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const RegionKey key = 0x10003;
  const auto read = [&](std::uint64_t bytes, std::uint64_t offset) {
    const wire::FabricAnswer answer{4, key, 0, 1, 0, bytes, offset};
    return read_answer(packet_of(answer), Descriptor(::dup(sparse.number())), key);
  };
  for (const auto& refused : {read(kBytes, 0), read(MappingCache::kBytesMax + 1, 0),
                              read(1, MappingCache::kBytesMax), read(kBytes - 1, 1)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::corrupt);
  }
  const auto taken = read(4096, 4096);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->status, Status::success);
}

}  // namespace
}  // namespace espalier::fabric::shm
