// SPDX-License-Identifier: Apache-2.0
// Ports of one process: what is sent to one arrives there and nowhere else, in order; a full ring
// loses packets and goes on; ports come, go and come again; and one address is one port's.
#include "fabric/roce/exchange.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/packet_ring.hpp"
#include "fabric/roce/testing/port_traffic.hpp"

namespace espalier::fabric::roce {
namespace {

constexpr std::size_t kNumberAt = 12;  // behind what is a BTH

PortAddress address_of(unsigned number) {
  return {IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(number)), 4791};
}

/// A packet that holds its source, its destination, and its number.
Bytes numbered(unsigned from, unsigned to, std::uint64_t number, std::size_t bytes = 32) {
  Bytes packet(bytes, static_cast<std::byte>(from * 16 + to));
  std::memcpy(packet.data() + kNumberAt, &number, sizeof number);
  return packet;
}
std::uint64_t number_in(std::span<const std::byte> packet) {
  std::uint64_t number;
  std::memcpy(&number, packet.data() + kNumberAt, sizeof number);
  return number;
}

class RoceExchange : public ::testing::Test {
 protected:
  std::unique_ptr<PacketPort> open(unsigned number) { return *exchange.open(address_of(number)); }

  PortExchange exchange;
};

TEST_F(RoceExchange, EachPortGetsWhatIsForIt) {
  constexpr unsigned kPorts = 5;
  constexpr std::uint64_t kRounds = 300;
  base::Random random(base::seed_from_environment(80));
  std::vector<std::unique_ptr<PacketPort>> ports;
  for (unsigned i = 0; i < kPorts; ++i) ports.push_back(open(i));
  std::array<std::array<std::uint64_t, kPorts>, kPorts> sent{};
  std::array<std::array<std::uint64_t, kPorts>, kPorts> came{};
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (unsigned from = 0; from < kPorts; ++from) {
      for (std::uint64_t i = random.below(8); i != 0; --i) {
        const auto to = static_cast<unsigned>(random.below(kPorts));  // itself too
        ASSERT_TRUE(send(*ports[from], address_of(to),
                         numbered(from, to, sent[from][to]++, 4 * random.between(5, 1024))));
      }
      ports[from]->flush();
    }
    for (unsigned to = 0; to < kPorts; ++to) {
      for (const Came& each : take(*ports[to])) {
        const unsigned from = each.from.ip.bytes[3];
        ASSERT_EQ(each.from, address_of(from));
        ASSERT_EQ(each.bytes.front(), static_cast<std::byte>(from * 16 + to));
        ASSERT_EQ(number_in(each.bytes), came[from][to]++);
      }
    }
  }
  EXPECT_EQ(came, sent);
}

TEST_F(RoceExchange, WhatArrivesIsSealed) {
  const auto near = open(1);
  const auto far = open(2);
  ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 0)));
  near->flush();
  const auto came = far->receive();
  ASSERT_EQ(came.size(), 1u);
  const Icrc icrc({near->address().ip, far->address().ip, 4791, 4791, true});
  EXPECT_TRUE(icrc.matches(came.front().ib));
}

TEST_F(RoceExchange, WhatIsNotFlushedStays) {
  const auto near = open(1);
  const auto far = open(2);
  ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 0)));
  EXPECT_TRUE(far->receive().empty());
  near->flush();
  EXPECT_EQ(far->receive().size(), 1u);
  near->flush();
  EXPECT_TRUE(far->receive().empty());
}

TEST_F(RoceExchange, TooLongAPacketHasNoRoomEver) {
  const auto near = open(1);
  const auto far = open(2);
  const std::size_t most = PacketRing::kPacketBytesMax - wire::roce::kIcrcBytes;
  EXPECT_EQ(near->begin(far->address(), most + 1), nullptr);
  EXPECT_TRUE(send(*near, far->address(), numbered(1, 2, 0, most)));
  near->flush();
  ASSERT_EQ(far->receive().size(), 1u);
}

// The loss is not reported, as on a network; what fits arrives, and so does what is sent later.
TEST_F(RoceExchange, AFullRingLosesPacketsUntilThereIsRoom) {
  const auto near = open(1);
  const auto far = open(2);
  const auto other = open(3);
  constexpr std::size_t kBytes = 1000;
  constexpr std::uint64_t kFit = PacketRing::kLines / 16;  // 1000, ICRC and length: 16 lines
  std::uint64_t number = 0;
  std::uint64_t expected = 0;
  // The second time not from the beginning of the ring, so that it is full across the end.
  for (int round = 0; round < 2; ++round) {
    while (number != kFit) {
      ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, number++, kBytes)));
    }
    for (std::uint64_t lost = 0; lost != 100; ++lost) {
      ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 1'000'000 + lost, kBytes)));
    }
    near->flush();
    ASSERT_TRUE(send(*near, other->address(), numbered(1, 3, 0, kBytes)));  // has a ring of its own
    near->flush();
    EXPECT_EQ(other->receive().size(), 1u);
    for (bool any = true; any;) {
      const auto came = take(*far);
      any = !came.empty();
      ASSERT_LE(came.size(), PacketRing::kBurst);
      for (const Came& each : came) ASSERT_EQ(number_in(each.bytes), expected++);
    }
    ASSERT_EQ(expected, kFit);
    // What the reader is done with is there again.
    for (number = expected = 0; number != 10; ++number) {
      ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, number, kBytes)));
    }
    near->flush();
    for (const Came& each : take(*far)) ASSERT_EQ(number_in(each.bytes), expected++);
    ASSERT_EQ(expected, 10u);
    EXPECT_TRUE(far->receive().empty());
    number = expected = 0;
  }
}

// A burst lies in the ring, so none of it is written over until the next one is asked for.
TEST_F(RoceExchange, ABurstStaysUntilTheNext) {
  const auto near = open(1);
  const auto far = open(2);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 7, 4000)));
  near->flush();
  const auto burst = far->receive();
  ASSERT_EQ(burst.size(), 8u);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 8, 4000)));
    near->flush();
  }
  for (const Arrived& each : burst) ASSERT_EQ(number_in(each.ib), 7u);
}

TEST_F(RoceExchange, ToNobodyIsLost) {
  const auto near = open(1);
  ASSERT_TRUE(send(*near, address_of(2), numbered(1, 2, 0)));
  near->flush();
  const auto far = open(2);
  near->flush();
  EXPECT_TRUE(far->receive().empty());
  ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, 1)));
  near->flush();
  const auto came = take(*far);
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(number_in(came.front().bytes), 1u);
}

TEST_F(RoceExchange, AnAddressIsOnePorts) {
  auto first = open(1);
  const auto second = exchange.open(address_of(1));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::already_exists);
  PortAddress beside = address_of(1);
  ++beside.udp_port;
  EXPECT_TRUE(exchange.open(beside));
  first.reset();
  EXPECT_TRUE(exchange.open(address_of(1)));
}

// A later port at the same address gets what is sent from then on, and none of the old.
TEST_F(RoceExchange, WhoGoesAndComesAgainIsFound) {
  const auto near = open(1);
  auto far = open(2);
  for (std::uint64_t round = 0; round < 20; ++round) {
    ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, round)));
    near->flush();
    ASSERT_TRUE(send(*far, near->address(), numbered(2, 1, round)));
    far->flush();
    if (round % 2 == 0) {
      const auto came = take(*far);
      ASSERT_EQ(came.size(), 1u);
      EXPECT_EQ(number_in(came.front().bytes), round);
    }
    far.reset();
    ASSERT_TRUE(send(*near, address_of(2), numbered(1, 2, 1000)));  // to no port
    near->flush();
    far = open(2);
    EXPECT_TRUE(far->receive().empty());
    // The last packet of a port that has gone arrives, once.
    const auto last_packets = take(*near);
    ASSERT_EQ(last_packets.size(), 1u);
    EXPECT_EQ(number_in(last_packets.front().bytes), round);
    EXPECT_EQ(last_packets.front().from, address_of(2));
  }
}

TEST_F(RoceExchange, WaitingEndsWhenSomethingIsThereOrComesToo) {
  const auto near = open(1);
  const auto far = open(2);
  far->wake();
  far->wait(3600 * kSecond);
  // From a port whose ring is new, and from one that is known.
  for (std::uint64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(send(*near, far->address(), numbered(1, 2, i)));
    near->flush();
    far->wait(3600 * kSecond);
    ASSERT_EQ(far->receive().size(), 1u);
  }
  const std::uint64_t begin = far->now_ns();
  far->wait(2'000'000);
  EXPECT_GE(far->now_ns() - begin, 2'000'000u);
  EXPECT_TRUE(far->receive().empty());
}

TEST(PortExchangeConcurrency, OfManyWhoWantAnAddressOneGetsIt) {
  constexpr unsigned kThreads = 4;
  constexpr int kRounds = 300;
  PortExchange exchange;
  std::array<std::unique_ptr<PacketPort>, kThreads> got;
  std::array<std::atomic<unsigned>, kRounds> winners{};
  std::array<std::atomic<unsigned>, kRounds> refused{};
  std::barrier together(kThreads);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t round = 0; round < kRounds; ++round) {
        together.arrive_and_wait();
        auto opened = exchange.open(address_of(1));
        if (opened) {
          ++winners[round];
          got[i] = std::move(*opened);
        } else if (opened.error().code == Code::already_exists) {
          ++refused[round];
        }
        together.arrive_and_wait();
        got[i].reset();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t round = 0; round < kRounds; ++round) {
    ASSERT_EQ(winners[round], 1u) << round;
    ASSERT_EQ(refused[round], kThreads - 1) << round;
  }
}

TEST(PortExchangeConcurrency, PortsOfTwoThreadsExchangePackets) {
  constexpr std::uint64_t kPackets = 20'000;
  constexpr std::uint64_t kUnderWay = 200;
  PortExchange exchange;
  const std::array ports{*exchange.open(address_of(0)), *exchange.open(address_of(1))};
  std::array<std::uint64_t, 2> wrong{};
  const auto run = [&](unsigned own) {
    PacketPort& port = *ports[own];
    std::uint64_t sent = 0;
    std::uint64_t came = 0;
    while (came != kPackets || sent != kPackets) {
      // Neither is further ahead of what it has heard, so no ring can be full.
      while (sent != kPackets && sent - came < kUnderWay) {
        send(port, address_of(1 - own), numbered(own, 1 - own, sent, 32 + sent % 64 * 4));
        ++sent;
      }
      port.flush();
      const auto burst = port.receive();
      for (const Arrived& each : burst) {
        if (number_in(each.ib) != came++ || each.from != address_of(1 - own)) ++wrong[own];
      }
      if (burst.empty()) port.wait(kSecond);
    }
    port.flush();
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(wrong, (std::array<std::uint64_t, 2>{}));
}

// One port receives while its senders open and close, so that rings are made and end all the time.
TEST(PortExchangeConcurrency, PortsComeAndGoWhileOthersSend) {
  constexpr unsigned kThreads = 3;
  constexpr std::uint64_t kRounds = 200;
  PortExchange exchange;
  const auto listener = *exchange.open(address_of(0));
  std::atomic<unsigned> running{kThreads};
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const auto port = *exchange.open(address_of(i));
        send(*port, address_of(0), numbered(i, 0, round));
        // To one that may just be going.
        send(*port, address_of(i % kThreads + 1), numbered(i, i % kThreads + 1, round));
        port->flush();
        for (const Came& each : take(*port)) {
          if (each.bytes.size() != 32) std::abort();
        }
      }
      --running;
      listener->wake();
    });
  }
  std::array<std::uint64_t, kThreads + 1> came{};
  for (bool last = false; !last;) {
    last = running == 0;
    for (bool any = true; any;) {
      const auto burst = take(*listener);
      any = !burst.empty();
      for (const Came& each : burst) {
        const unsigned from = each.from.ip.bytes[3];
        EXPECT_LT(number_in(each.bytes), kRounds);
        ++came[from];
      }
    }
    if (!last) listener->wait(kSecond);
  }
  for (auto& thread : threads) thread.join();
  for (unsigned i = 1; i <= kThreads; ++i) EXPECT_EQ(came[i], kRounds);
}

TEST(PortExchangeConcurrency, WakeEndsTheWaitThatGoesOnOrTheNextOne) {
  PortExchange exchange;
  const auto port = *exchange.open(address_of(1));
  for (int round = 0; round < 100; ++round) {
    std::thread other([&] { port->wake(); });
    port->wait(3600 * kSecond);
    other.join();
  }
  EXPECT_TRUE(port->receive().empty());
}

}  // namespace
}  // namespace espalier::fabric::roce
