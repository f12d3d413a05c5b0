// SPDX-License-Identifier: Apache-2.0
// Peers that do not keep to the protocol: what they send ends their own connection, and nothing else.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "base/unix_address.hpp"
#include "fabric/shm/packets.hpp"
#include "fabric/shm/shm_fixture.hpp"
#include "memory/packets.hpp"

namespace espalier::fabric::shm {
namespace {

using memory::Descriptor;
using memory::SharedMemory;
using State = QueuePair::State;

constexpr std::uint32_t kLines = 1024;

template <class T>
std::span<const std::byte> packet_of(const T& packet) {
  return std::as_bytes(std::span(&packet, 1));
}

// Speaks the protocol by hand, to a good target.
struct Raw {
  Raw() {
    EXPECT_TRUE(target.endpoint->listen(path()));
    socket = *memory::connect_packets(path());
  }
  [[nodiscard]] std::string path() const { return (folder / "s").string(); }

  void join() {
    EXPECT_TRUE(send_hello(socket.number(), {}, *table));
    std::optional<ConnectRequest> request;
    until(target, target, [&] { return (request = target.endpoint->next_request()).has_value(); });
    target.pair = *target.endpoint->accept(*request, target.options(), {});
    wire::FabricWelcome welcome;
    Descriptor descriptors[2];
    const auto got = memory::receive_packet(
        socket.number(), std::as_writable_bytes(std::span(&welcome, 1)), descriptors);
    EXPECT_EQ(*got, sizeof welcome);
    EXPECT_EQ(welcome.ring_lines, kLines);
    memory = *SharedMemory::attach(std::move(descriptors[0]), wire::fabric_channel_bytes(kLines),
                                   memory::Rights::write);
  }
  [[nodiscard]] std::byte* ring() const { return memory.at(wire::fabric_ring(0, kLines)); }
  [[nodiscard]] std::byte* side(std::size_t field) const {
    return memory.at(offsetof(wire::FabricPage, sides) + field);
  }
  void put(wire::FabricPieceHead head) const {
    head.sequence = wire::fabric_sequence(0);
    const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(head);
    for (std::size_t i = 4; i != 0; --i) {
      base::store_shared(ring() + 8 * (i - 1), words[i - 1], std::memory_order_release);
    }
  }
  void wait_for_the_end() {
    until(target, target, [&] { return target.pair->state() == State::ended; });
  }
  // Whether a peer that is not hostile is still served.
  void expect_others_are_served() {
    Side good;
    target.pair.reset();
    connect(good, target, path(), good.options(), target.options());
    EXPECT_EQ(good.pair->state(), State::connected);
  }
  // Whether the target has hung up.
  void expect_hung_up() {
    std::array<std::byte, 512> packet;
    Descriptor descriptors[2];
    while (true) {
      const auto got = memory::receive_packet(socket.number(), packet, descriptors);
      if (!got || *got == 0) return;
    }
  }

  base::TemporaryFolder folder;
  std::shared_ptr<RegionTable> table = *RegionTable::create();
  Side target;
  Descriptor socket;
  SharedMemory memory;
};

TEST(ShmHostile, PiecesThatCannotBeEndTheConnection) {
  const std::uint32_t longest = wire::fabric_piece_bytes_max(kLines);
  const wire::FabricPieceHead heads[] = {
      {0, 0, 0, {}, 0, 0, 0, 0},                           // no kind
      {0, 8, 5, {}, 0, 8, 0, 0},                           // more of nothing
      {0, 8, 6, {}, 0, 8, 0, 0},                           // no such kind
      {0, 8, 255, {}, 0, 8, 0, 0},                         // nor such
      {0, 9, 1, {}, 0, 8, 0, 0},                           // more than its message
      {0, 0, 1, {}, 0, 8, 0, 0},                           // nothing of something
      {0, 8, 1, {}, 0, kMessageBytesMax + 1, 0, 0},        // too long
      {0, longest + 1, 1, {}, 0, kMessageBytesMax, 0, 0},  // more than a piece holds
      {0, 0xFFFFFFFF, 1, {}, 0, 0xFFFFFFFF, 0, 0},         // far more
      {0, 8, 3, {}, 0, 8, 12345, 678},                     // to no region
      {0, 8, 3, {}, 0, kMessageBytesMax, 0, ~std::uint64_t{0}},
  };
  for (const auto& head : heads) {
    Raw raw;
    raw.join();
    std::array<std::byte, 8> into;
    const Receive receive{1, into};
    ASSERT_EQ(raw.target.pair->post_receives({&receive, 1}), 1u);
    raw.put(head);
    raw.wait_for_the_end();
    EXPECT_NE(raw.target.pair->ended_by(), Status::success);
    EXPECT_EQ(raw.target.take(raw.target.receives)->status, Status::flushed);
    raw.expect_others_are_served();
  }
}

TEST(ShmHostile, TheNumbersOfAPeerCountOnlyIfTheyCanBeTrue) {
  for (const std::uint64_t done : {std::uint64_t{2}, ~std::uint64_t{0}}) {
    Raw raw;
    raw.join();
    const auto message = bytes_of("x");
    raw.target.pair->post(WorkRequest::send(1, message));
    base::store_shared(raw.side(offsetof(wire::FabricSide, credit)), ~std::uint64_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, starved)), ~std::uint64_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, sleeping)), ~std::uint32_t{0});
    base::store_shared(raw.side(offsetof(wire::FabricSide, done)), done);
    raw.wait_for_the_end();
    EXPECT_EQ(raw.target.pair->ended_by(), Status::remote_invalid);
    EXPECT_EQ(raw.target.take(raw.target.sends)->status, Status::flushed);
  }
}

TEST(ShmHostile, AnEndForNoReasonIsOne) {
  Raw raw;
  raw.join();
  const auto message = bytes_of("x");
  raw.target.pair->post(WorkRequest::send(1, message));
  base::store_shared(raw.side(offsetof(wire::FabricSide, ended)), ~std::uint32_t{0});
  base::store_shared(raw.side(offsetof(wire::FabricSide, failure)), ~std::uint32_t{0});
  raw.socket.close();
  raw.wait_for_the_end();
  EXPECT_EQ(raw.target.pair->ended_by(), Status::remote_invalid);
  EXPECT_EQ(raw.target.take(raw.target.sends)->status, Status::remote_invalid);
}

TEST(ShmHostile, GarbageInTheMemoryOfTheConnection) {
  base::Random random(base::seed_from_environment(31));
  for (int round = 0; round < 60; ++round) {
    Raw raw;
    raw.join();
    std::vector<std::byte> into(5000);
    for (std::uint64_t i = 0; i < 20; ++i) {
      const Receive receive{i, into};
      ASSERT_EQ(raw.target.pair->post_receives({&receive, 1}), 1u);
      raw.target.pair->post(WorkRequest::send(i, std::span(into).first(random.below(5000))));
    }
    for (int step = 0; step < 200 && raw.target.pair->state() == State::connected; ++step) {
      // Heads that are nearly good, everywhere, and words of any kind.
      const std::uint64_t line = random.below(round % 2 == 0 ? 4 : kLines);
      wire::FabricPieceHead head{};
      head.sequence = wire::fabric_sequence(line);
      head.bytes = static_cast<std::uint32_t>(random.below(100));
      head.kind = static_cast<std::uint8_t>(random.below(7));
      head.message_bytes = static_cast<std::uint32_t>(random.below(200));
      const auto words = std::bit_cast<std::array<std::uint64_t, 4>>(head);
      for (std::size_t i = 0; i < 4; ++i) {
        base::store_shared(raw.ring() + line * 64 + 8 * i, words[i]);
      }
      if (random.chance(0.1)) {
        base::store_shared(raw.side(8 * random.below(16)), random() >> random.below(64));
      }
      raw.target.endpoint->progress();
      raw.target.endpoint->wait(0);
      Completion told[8];
      static_cast<void>(raw.target.sends.poll(told));
      static_cast<void>(raw.target.receives.poll(told));
    }
    raw.socket.close();
    raw.wait_for_the_end();
  }
}

TEST(ShmHostile, PacketsThatCannotBeEndTheConnection) {
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

TEST(ShmHostile, HelloesThatCannotBeAreNotHeard) {
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
  const Descriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.number(), 1 << 20), 0);
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

TEST(ShmHostile, QuestionsForAnyKeyAreAnswered) {
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

TEST(ShmHostile, WhoAsksAndDoesNotReadIsHungUpOn) {
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

// Listens by hand, for a good client.
struct RawTarget {
  RawTarget() {
    const auto address = base::UnixAddress::file(path());
    listening = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listening.number(), address->get(), address->bytes()), 0);
    EXPECT_EQ(::listen(listening.number(), 8), 0);
    client.pair = *client.endpoint->connect(path(), client.options(), {});
    socket = Descriptor(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  [[nodiscard]] std::string path() const { return (folder / "s").string(); }
  void wait_for_the_end() {
    until(client, client, [&] { return client.pair->state() == State::ended; });
  }

  base::TemporaryFolder folder;
  Descriptor listening;
  Side client;
  Descriptor socket;
};

TEST(ShmHostile, WelcomesThatCannotBeEndTheConnection) {
  const auto table = *RegionTable::create();
  const auto channel = *SharedMemory::create("channel", wire::fabric_channel_bytes(kLines));
  wire::FabricWelcome good{};
  good.packet = static_cast<std::uint32_t>(wire::FabricPacket::welcome);
  good.format = wire::kFabricFormat;
  good.magic = wire::kFabricMagic;
  good.ring_lines = kLines;
  wire::FabricWelcome odd = good;
  odd.ring_lines = 63;
  wire::FabricWelcome many = good;
  many.ring_lines = wire::kFabricLinesMax;
  wire::FabricWelcome none = good;
  none.ring_lines = 0;
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

TEST(ShmHostile, AnswersThatCannotBeEndTheConnection) {
  const auto region = *SharedMemory::create("region", 4096);
  const RegionKey key = 0x10003;
  const auto answer = [&](std::uint32_t rights, std::uint64_t bytes, std::uint64_t offset) {
    return wire::FabricAnswer{4, key, 0, rights, 0, bytes, offset};
  };
  wire::FabricAnswer other = answer(1, 4096, 0);
  other.key = 0x20003;
  const wire::FabricAnswer answers[] = {answer(0, 4096, 0),
                                        answer(8, 4096, 0),
                                        answer(1, 0, 0),
                                        answer(1, 4097, 0),
                                        answer(1, 4096, 1),
                                        answer(1, ~std::uint64_t{0}, 4096),
                                        answer(1, 4096, ~std::uint64_t{0} - 4095),
                                        answer(1, 1, std::uint64_t{1} << 46),
                                        other};
  for (const wire::FabricAnswer& bad : answers) {
    const auto words = *SharedMemory::create("words", RegionTable::kRegionsMax * 4);
    base::store_shared(words.at((key & 0xFFFF) * 4), key);
    const auto channel = *Channel::create(kLines);
    RawTarget raw;
    wire::FabricWelcome welcome{};
    welcome.packet = static_cast<std::uint32_t>(wire::FabricPacket::welcome);
    welcome.format = wire::kFabricFormat;
    welcome.magic = wire::kFabricMagic;
    welcome.ring_lines = kLines;
    const int both[] = {channel.descriptor(), words.descriptor()};
    ASSERT_TRUE(memory::send_packet(raw.socket.number(), packet_of(welcome), both));
    until(raw.client, raw.client, [&] { return raw.client.pair->state() == State::connected; });
    std::array<std::byte, 8> into;
    raw.client.pair->post(WorkRequest::read(1, into, key, 0));
    const int own[] = {region.descriptor()};
    // What was asked comes first; only then is there somebody who waits for an answer.
    std::array<std::byte, 300> packet;
    Descriptor descriptors[2];
    for (std::size_t got = 0; got != sizeof(wire::FabricNote);) {
      got = *memory::receive_packet(raw.socket.number(), packet, descriptors);
    }
    ASSERT_TRUE(memory::send_packet(raw.socket.number(), packet_of(bad), own));
    raw.wait_for_the_end();
    const Status told = raw.client.take(raw.client.sends)->status;
    EXPECT_TRUE(told == Status::retry_exceeded || told == Status::remote_operation);
  }
}

}  // namespace
}  // namespace espalier::fabric::shm
