// SPDX-License-Identifier: Apache-2.0
// Packets between sockets of this machine: all that is sent arrives, whole and in order, however
// the kernel packs it; packets of other senders, or changed on the way, are dropped.
//
// Loopback loses nothing while the receive buffer has room, so each test reads often.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/testing/port_traffic.hpp"
#include "fabric/roce/udp_address.hpp"
#include "fabric/roce/udp_port.hpp"

namespace espalier::fabric::roce {
namespace {

PortAddress loopback(bool six) {
  if (!six) return {IpAddress::v4(127, 0, 0, 1), 0};
  return {IpAddress::v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}), 0};
}

struct Way {
  bool six;
  bool offload_near;
  bool offload_far;
};

class UdpPorts : public ::testing::TestWithParam<Way> {
 protected:
  UdpPorts()
      : random(base::seed_from_environment(60)),
        near(*UdpPort::open({loopback(GetParam().six), GetParam().offload_near})),
        far(*UdpPort::open({loopback(GetParam().six), GetParam().offload_far})) {}

  /// Sends a packet of so many bytes, ICRC counted, flushing when the port is full.
  void send(std::size_t bytes) {
    Bytes packet(bytes - 4);
    random.fill(packet);
    std::byte* at = near->begin(far->address(), packet.size());
    if (at == nullptr) {
      near->flush();
      at = near->begin(far->address(), packet.size());
    }
    ASSERT_NE(at, nullptr);
    std::copy(packet.begin(), packet.end(), at);
    near->seal();
    sent.push_back(std::move(packet));
  }
  /// Reads until as many have come as were sent, or nothing comes any more.
  void take() {
    near->flush();
    while (came.size() < sent.size()) {
      const auto burst = far->receive();
      if (burst.empty()) {
        far->wait(kSecond);
        const auto late = far->receive();
        if (late.empty()) return;
        keep(late);
      }
      keep(burst);
    }
  }
  void keep(std::span<const Arrived> burst) {
    for (const Arrived& each : burst) {
      EXPECT_EQ(each.from, near->address());
      came.emplace_back(each.ib.begin(), each.ib.end() - 4);
    }
  }
  void expect_all() {
    take();
    EXPECT_EQ(far->counters().wrong_icrc, 0u);
    EXPECT_EQ(near->counters().unsent, 0u);
    EXPECT_TRUE(came == sent) << came.size() << " of " << sent.size();
  }

  base::Random random;
  std::unique_ptr<UdpPort> near;
  std::unique_ptr<UdpPort> far;
  std::vector<Bytes> sent;
  std::vector<Bytes> came;
};

TEST_P(UdpPorts, PacketsOfOneLengthArrive) {
  for (const std::size_t bytes : {16u, 20u, 64u, 276u, 1040u, 4116u, 4140u}) {
    for (int i = 0; i < 200; ++i) {
      send(bytes);
      if (i % 64 == 63) take();
    }
    expect_all();
  }
}

TEST_P(UdpPorts, PacketsOfAnyLengthsArrive) {
  for (int i = 0; i < 3000; ++i) {
    const std::size_t words = random.chance(0.3) ? 4 : random.between(4, 1035);
    for (std::uint64_t run = random.between(1, 8); run != 0; --run) send(4 * words);
    if (random.chance(0.2)) take();
  }
  expect_all();
}

TEST_P(UdpPorts, AsManyPartsAsFitOneDatagramArrive) {
  for (std::size_t parts = 1; parts <= 70; ++parts) {
    for (std::size_t i = 0; i < parts; ++i) send(64);
    take();
  }
  expect_all();
  if (GetParam().offload_near) {
    EXPECT_LT(near->counters().sends, near->counters().sent / 16);
    // What left together comes together, if it is asked for so.
    if (GetParam().offload_far) {
      EXPECT_LT(far->counters().receives, far->counters().received / 16);
    } else {
      EXPECT_EQ(far->counters().receives, far->counters().received);
    }
  } else {
    EXPECT_EQ(near->counters().sends, near->counters().sent);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, UdpPorts,
                         ::testing::Values(Way{false, true, true}, Way{false, false, false},
                                           Way{false, true, false}, Way{false, false, true},
                                           Way{true, true, true}, Way{true, false, false}),
                         [](const auto& with) {
                           return std::string(with.param.six ? "Six" : "Four") +
                                  (with.param.offload_near ? "Gso" : "Plain") +
                                  (with.param.offload_far ? "Gro" : "Plain");
                         });

/// A port, and a plain socket beside it.
class UdpPortFromOutside : public ::testing::TestWithParam<bool> {
 protected:
  UdpPortFromOutside() : random(base::seed_from_environment(61)) {
    port = *UdpPort::open({loopback(GetParam())});
    socket_ = ::socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const SocketAddress any(loopback(GetParam()));
    EXPECT_EQ(::bind(socket_, any.get(), any.bytes), 0);
    sockaddr_storage name;
    socklen_t bytes = sizeof name;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&name), &bytes), 0);
    own = to_port_address(name);
    const int whole = IP_PMTUDISC_DO;
    if (!GetParam()) ::setsockopt(socket_, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole);
  }
  ~UdpPortFromOutside() override { ::close(socket_); }

  void send(const Bytes& bytes) {
    const SocketAddress to(port->address());
    ASSERT_EQ(::sendto(socket_, bytes.data(), bytes.size(), 0, to.get(), to.bytes),
              static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] Bytes sealed(std::size_t bytes, std::uint16_t id = 0) {
    Bytes made(bytes);
    random.fill(made);
    Icrc({own.ip, port->address().ip, own.udp_port, port->address().udp_port, true}).seal(made, id);
    return made;
  }
  /// Sends one that is good, and takes until it is there, with all that was sent before it. Returns
  /// how many of those were let through.
  std::size_t take_all() {
    const std::uint64_t seen = port->counters().received;
    std::size_t count = 0;
    const std::uint64_t until = seen + sent_ + 1;
    sent_ = 0;
    send(sealed(64));
    while (port->counters().received < until) {
      const std::uint64_t before = port->counters().received;
      count += port->receive().size();
      if (port->counters().received == before) port->wait(kSecond);
    }
    return count - 1;
  }
  void send_counted(const Bytes& bytes) {
    send(bytes);
    ++sent_;
  }

  base::Random random;
  std::unique_ptr<UdpPort> port;
  PortAddress own;
  int socket_ = -1;
  std::uint64_t sent_ = 0;
};

// Of network cards too, which listen elsewhere.
TEST_P(UdpPortFromOutside, APacketComesFromThePortThatItLeft) {
  bool bound = false;
  for (std::uint16_t udp_port = 0xFFFF; !bound && udp_port >= kFlowPorts; --udp_port) {
    ::close(socket_);
    socket_ = ::socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    own.udp_port = udp_port;
    const SocketAddress high(own);
    bound = ::bind(socket_, high.get(), high.bytes) == 0;
  }
  ASSERT_TRUE(bound);
  send(sealed(64));
  auto came = port->receive();
  while (came.empty()) {
    port->wait(kSecond);
    came = port->receive();
  }
  EXPECT_EQ(came[0].from, own);
}

TEST_P(UdpPortFromOutside, AChangedByteAnywhereIsNoticed) {
  for (const std::size_t bytes : {16u, 64u, 300u}) {
    for (std::size_t at = 0; at < bytes; ++at) {
      // What routers may change is not covered.
      if (at == 4) continue;
      Bytes changed = sealed(bytes);
      changed[at] ^= static_cast<std::byte>(random.between(1, 255));
      send_counted(changed);
      if (at % 32 != 31) continue;
      EXPECT_EQ(take_all(), 0u);
    }
    EXPECT_EQ(take_all(), 0u);
  }
  EXPECT_EQ(port->counters().wrong_icrc, 16u + 64 + 300 - 3);
}

TEST_P(UdpPortFromOutside, IdsThatAKernelGivesAreExplainedAndOthersNot) {
  const bool six = GetParam();
  for (const std::size_t bytes : {16u, 64u, 1040u, 4116u, 64u + 256}) {
    for (std::uint32_t id = 0; id < 2 * UdpPort::kIdsMax; ++id) {
      send_counted(sealed(bytes, static_cast<std::uint16_t>(id)));
      const bool good = six || id < UdpPort::kIdsMax;
      EXPECT_EQ(take_all(), good ? 1u : 0u) << id << ' ' << bytes;
    }
  }
}

TEST_P(UdpPortFromOutside, GarbageIsDropped) {
  std::size_t let = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes garbage(random.chance(0.9) ? random.below(200) : random.below(60'000));
    random.fill(garbage);
    if (garbage.empty()) continue;  // is no part of anything, and not counted
    send_counted(garbage);
    if (i % 8 == 7) let += take_all();
  }
  let += take_all();
  EXPECT_EQ(let, 0u);
}

TEST_P(UdpPortFromOutside, WhatIsLongerThanAnyPacketIsDroppedThoughSealed) {
  send_counted(sealed(8192));
  EXPECT_EQ(take_all(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ip, UdpPortFromOutside, ::testing::Bool(),
                         [](const auto& with) { return std::string(with.param ? "Six" : "Four"); });

TEST(UdpPort, AnAddressInUseIsRefused) {
  const auto first = *UdpPort::open({loopback(false)});
  const auto second = UdpPort::open({first->address()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::system);
  EXPECT_EQ(second.error().detail, static_cast<std::uint32_t>(EADDRINUSE));
}

TEST(UdpPort, AnyAddressIsNoAddressThatAnIcrcCanCover) {
  const auto four = UdpPort::open({{IpAddress::v4(0, 0, 0, 0), 0}});
  ASSERT_FALSE(four);
  EXPECT_EQ(four.error().code, Code::invalid_argument);
  const auto six = UdpPort::open({{IpAddress::v6({}), 0}});
  ASSERT_FALSE(six);
  EXPECT_EQ(six.error().code, Code::invalid_argument);
}

TEST(UdpPort, APortOfItsChoiceNamesAListener) {
  const auto port = *UdpPort::open({loopback(false)});
  EXPECT_GE(port->address().udp_port, 20'000);
  EXPECT_LT(port->address().udp_port, 49'152);
}

TEST(UdpPortConcurrency, WakeEndsTheWaitThatGoesOnOrTheNextOne) {
  const auto port = *UdpPort::open({loopback(false)});
  port->wake();
  port->wait(3600 * kSecond);
  std::thread other([&] { port->wake(); });
  port->wait(3600 * kSecond);
  other.join();
  EXPECT_TRUE(port->receive().empty());
}

TEST(UdpAddress, TextsAreReadAndWritten) {
  for (const char* text : {"10.0.0.1:4791", "127.0.0.1:1", "[fe80::1]:4791", "[::1]:65535"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_text(*address), text);
  }
  EXPECT_EQ(to_text(*parse_address("10.0.0.1")), "10.0.0.1:4791");
  EXPECT_EQ(to_text(*parse_address("fe80::1")), "[fe80::1]:4791");
  EXPECT_EQ(to_text(*parse_address("[::1]")), "[::1]:4791");
  base::Random random(base::seed_from_environment(62));
  for (int i = 0; i < 1000; ++i) {
    PortAddress address{{random.chance(0.5), {}},
                        static_cast<std::uint16_t>(random.between(1, 65535))};
    random.fill(
        std::as_writable_bytes(std::span(address.ip.bytes).first(address.ip.is_v6 ? 16 : 4)));
    EXPECT_EQ(*parse_address(to_text(address)), address);
  }
}

TEST(UdpAddress, OtherTextsAreRefused) {
  for (const char* text : {"",
                           ":",
                           "10.0.0.1:",
                           "10.0.0.1:0",
                           "10.0.0.1:65536",
                           "10.0.0.1:-1",
                           "10.0.0.1:1x",
                           "10.0.0.1: 1",
                           "10.0.0",
                           "10.0.0.256",
                           "[::1",
                           "[::1]4791",
                           "[::1]:",
                           "[10.0.0.1",
                           "::1]",
                           "[]",
                           "[]:1",
                           "localhost",
                           "[::1]:4791:1",
                           ":::",
                           "10.0.0.1:+1",
                           "[10.0.0.1]:1"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, Code::invalid_argument);
  }
}

}  // namespace
}  // namespace espalier::fabric::roce
