// SPDX-License-Identifier: Apache-2.0
// Packets through AF_XDP across a cable: to ports of the same kind and of UDP, both ways; what is
// not the port's goes on to the kernel; neighbours are found; ports end and leave nothing behind.
#include "fabric/xdp/port.hpp"

#include <gmock/gmock.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "fabric/roce/udp_address.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"

namespace espalier::fabric::xdp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using XdpPorts = XdpTest;
using XdpPortsSlow = XdpTest;

/// Sends so many packets of all lengths, few at a time, and takes them in order.
void carry(base::Random& random, roce::PacketPort& from, roce::PacketPort& to) {
  std::deque<Bytes> sent;
  constexpr std::size_t kPackets = 2000;
  constexpr std::size_t kUnderWay = 48;
  std::size_t arrived = 0;
  for (std::size_t made = 0; arrived < kPackets;) {
    for (std::size_t burst = random.below(kUnderWay);
         burst != 0 && made < kPackets && sent.size() < kUnderWay; --burst) {
      Bytes packet(12 + 4 * random.below(random.chance(0.3) ? 260 : 20));
      random.fill(packet);
      if (!send(from, to.address(), packet)) break;
      sent.push_back(std::move(packet));
      ++made;
    }
    from.flush();
    for (Came& came : take(to)) {
      ASSERT_FALSE(sent.empty());
      EXPECT_EQ(came.from, from.address());
      ASSERT_EQ(came.bytes, sent.front());
      sent.pop_front();
      ++arrived;
    }
  }
}

/// Of a cable's end: that packets leave and arrive in.
bool set_queues(const std::string& interface, std::uint32_t queues) {
  const memory::Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_SCHANNELS;
  channels.rx_count = channels.tx_count = queues;
  ifreq asked{};
  std::copy(interface.begin(), interface.end(), asked.ifr_name);
  asked.ifr_data = reinterpret_cast<char*>(&channels);
  return ::ioctl(any.number(), SIOCETHTOOL, &asked) == 0;
}

TEST_F(XdpPorts, AllArrivesAtOneOfTheSameKind) {
  for (const bool is_v6 : {false, true}) {
    for (const bool native : {true, false}) {
      SCOPED_TRACE(testing::Message() << (is_v6 ? "IPv6" : "IPv4") << (native ? "" : ", generic"));
      const Port near = open(0, is_v6, native);
      const Port far = open(1, is_v6, native);
      EXPECT_EQ(near->is_native(), native);
      EXPECT_FALSE(near->is_zero_copy());
      EXPECT_EQ(near->queues(), 1u);
      for (const auto& [from, to] : {std::pair(&*near, &*far), std::pair(&*far, &*near)}) {
        meet(*from, *to);
        carry(random, *from, *to);
        EXPECT_EQ(to->counters().not_ours + to->counters().wrong_icrc, 0u);
        EXPECT_GE(from->counters().sent, 2000u);
      }
    }
  }
}

TEST_F(XdpPorts, AllArrivesAtAPortOfUdpAndFromIt) {
  for (const bool is_v6 : {false, true}) {
    SCOPED_TRACE(is_v6 ? "IPv6" : "IPv4");
    const Port near = open(0, is_v6);
    const auto far = open_udp(1, is_v6);
    meet(*near, *far);
    carry(random, *near, *far);
    meet(*far, *near);
    carry(random, *far, *near);
    EXPECT_EQ(near->counters().not_ours + near->counters().wrong_icrc, 0u);
    EXPECT_EQ(far->counters().wrong_icrc, 0u);
  }
}

TEST_F(XdpPorts, ManyQueuesAreOnePort) {
  for (const int side : {0, 1}) {
    if (!network->at(side, [&] { return set_queues(interface_of(side), 2); })) {
      // Some kernels' veth has one queue alone; tests/skips.txt lists this.
      GTEST_SKIP() << "no two queues: " << std::strerror(errno);
    }
  }
  const Port near = open(0);
  EXPECT_EQ(near->queues(), 2u);
  // The kernel chooses the queue by the UDP ports, among other things.
  for (int i = 0; i < 16; ++i) {
    const auto far = *network->at(1, [&] {
      return roce::UdpPort::open({{address_of(1, false).ip, 0}, true});
    });
    meet(*near, *far);
    expect_way(*far, *near);
    expect_way(*near, *far);
  }
}

TEST_F(XdpPorts, WhatIsNotThePortsGoesToTheKernel) {
  const Port near = open(0);
  // ARP, and then a datagram to another UDP port.
  const auto open_socket = [] {
    return memory::Descriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  };
  const auto here = network->at(0, open_socket);
  const auto there = network->at(1, open_socket);
  roce::PortAddress other = address_of(0, false);
  other.udp_port = 4790;
  const roce::SocketAddress name(other);
  ASSERT_EQ(::bind(here.number(), name.get(), name.bytes), 0);
  const std::string text = "not for the port";
  ASSERT_GT(::sendto(there.number(), text.data(), text.size(), 0, name.get(), name.bytes), 0);
  char room[64] = {};
  EXPECT_EQ(::recv(here.number(), room, sizeof room, 0), static_cast<ssize_t>(text.size()));
  EXPECT_TRUE(near->receive().empty());
  EXPECT_EQ(near->counters().not_ours, 0u);
  // One to the port, which is no packet of RoCEv2, comes to it and is dropped there.
  other.udp_port = wire::roce::kUdpPort;
  const roce::SocketAddress port(other);
  ASSERT_GT(::sendto(there.number(), text.data(), text.size(), 0, port.get(), port.bytes), 0);
  while (near->counters().wrong_icrc == 0) EXPECT_TRUE(near->receive().empty());
}

TEST_F(XdpPorts, ThereIsOneForEachInterface) {
  Port first = open(0);
  roce::PortAddress other = address_of(0, true);
  const auto second = try_open(0, {interface_of(0), other});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), is_unsupported(Unsupported::program).error());
  EXPECT_THAT(std::string(explain(Unsupported::program)), HasSubstr("has an XDP program already"));
  const auto generic = try_open(0, {interface_of(0), other, false});
  EXPECT_FALSE(generic);
  ASSERT_TRUE(network->run(0, "ip -d link show veth0"));
  EXPECT_THAT(network->said(), HasSubstr("espalier_roce"));
  const auto far = open_udp(1);
  meet(*first, *far);
  expect_way(*far, *first);
  first.reset();
  ASSERT_TRUE(network->run(0, "ip -d link show veth0"));
  EXPECT_THAT(network->said(), Not(HasSubstr("xdp")));
  const Port third = open(0, true);
}

TEST_F(XdpPorts, AKilledProcessLeavesNothingBehind) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
  const memory::Descriptor reading(pipe_ends[0]);
  memory::Descriptor writing(pipe_ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Port port = open(0);
    [[maybe_unused]] const auto written = ::write(writing.number(), "x", 1);
    for (;;) ::pause();
  }
  writing.close();
  char completion = 0;
  ASSERT_EQ(::read(reading.number(), &completion, 1), 1);
  EXPECT_FALSE(try_open(0, {interface_of(0), address_of(0, false)}));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  // The kernel may take its time to end the link.
  while (!try_open(0, {interface_of(0), address_of(0, false)})) std::this_thread::yield();
}

TEST_F(XdpPortsSlow, NeighboursAreFoundAndForgotten) {
  const Port near = open(0);
  const auto far = open_udp(1);
  EXPECT_TRUE(send(*near, far->address(), noise(64)));
  EXPECT_EQ(near->counters().unknown, 1u);
  meet(*near, *far);
  expect_way(*near, *far);
  const std::uint64_t unknown = near->counters().unknown;

  // No machine has that address, or it is behind no router of ours, or our own.
  for (const auto ip : {roce::IpAddress::v4(10, 77, 0, 99), address_of(0, false).ip}) {
    EXPECT_TRUE(send(*near, {ip, 4791}, noise(64)));
  }
  EXPECT_EQ(near->counters().unknown, unknown + 2);
  // One of IPv6, and one longer than a frame.
  EXPECT_TRUE(send(*near, address_of(1, true), noise(64)));
  EXPECT_TRUE(send(*near, far->address(), noise(1600)));
  EXPECT_EQ(near->counters().unsent, 2u);
  expect_way(*near, *far);

  // A peer that has moved is found again: the administrator's entry counts, and so does its
  // removal.
  ASSERT_TRUE(network->run(0, "ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:99 dev veth0"))
      << network->said();
  const std::uint64_t before = far->counters().received;
  const std::uint64_t begin_ns = near->now_ns();
  bool lost = false;
  while (!lost) {
    ASSERT_LT(near->now_ns() - begin_ns, 60'000'000'000u);
    const std::uint64_t received = far->counters().received;
    ASSERT_TRUE(send(*near, far->address(), noise(64)));
    near->flush();
    for (int turn = 0; turn < 10'000 && far->counters().received == received; ++turn) {
      static_cast<void>(take(*far));
    }
    lost = far->counters().received == received;
  }
  EXPECT_GT(far->counters().received, before);
  ASSERT_TRUE(network->run(0, "ip neigh del 10.77.0.2 dev veth0")) << network->said();
  meet(*near, *far);
}

TEST_F(XdpPorts, RoutersAreAskedToo) {
  ASSERT_TRUE(network->run(1, "ip addr add 10.99.0.1/32 dev lo")) << network->said();
  ASSERT_TRUE(network->run(1, "ip addr add fd99::1/128 dev lo nodad")) << network->said();
  ASSERT_TRUE(network->run(0, "ip route add 10.99.0.0/24 via 10.77.0.2")) << network->said();
  ASSERT_TRUE(network->run(0, "ip route add fd99::/64 via fd77::2")) << network->said();
  for (const bool is_v6 : {false, true}) {
    const Port near = open(0, is_v6);
    roce::PortAddress behind{roce::IpAddress::v4(10, 99, 0, 1), wire::roce::kUdpPort};
    if (is_v6)
      behind.ip = roce::IpAddress::v6({0xFD, 0x99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    const auto far = *network->at(1, [&] { return roce::UdpPort::open({behind, true}); });
    meet(*near, *far);
    expect_way(*near, *far);
    expect_way(*far, *near);
  }
}

TEST_F(XdpPorts, SaysWhatCannotBe) {
  const roce::PortAddress own = address_of(0, false);
  const auto error = [&](const XdpPortOptions& options) {
    const auto port = try_open(0, options);
    return port ? Error{} : port.error();
  };
  EXPECT_EQ(error({"nonesuch0", own}), fail(Code::system, ENODEV).error());
  EXPECT_EQ(error({"", own}), fail(Code::system, ENODEV).error());
  EXPECT_EQ(error({"an-interface-with-a-long-name", own}), fail(Code::system, ENODEV).error());
  EXPECT_EQ(error({"lo", own}), is_unsupported(Unsupported::ethernet).error());
  EXPECT_EQ(error({"veth0", address_of(1, false)}), fail(Code::system, EADDRNOTAVAIL).error());
  EXPECT_EQ(error({"veth0", {roce::IpAddress{}, 4791}}), fail(Code::invalid_argument).error());
  const auto udp = open_udp(0);
  EXPECT_EQ(error({"veth0", own}), fail(Code::system, EADDRINUSE).error());
  const auto free = try_open(0, {"veth0", {own.ip, 0}});
  ASSERT_TRUE(free);
  EXPECT_LT((*free)->address().udp_port, roce::kFlowPorts);
  EXPECT_EQ(error({"veth0", {own.ip, 5000}}), is_unsupported(Unsupported::program).error());
  ASSERT_TRUE(network->run(1, "ip link set veth1 mtu 1000"));
  EXPECT_EQ(network->at(1,
                        [&] {
                          return XdpPort::open({"veth1", address_of(1, false)});
                        })
                .error(),
            is_unsupported(Unsupported::mtu).error());
}

TEST_F(XdpPorts, NeedsRights) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto refused = network->at(0, [&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
      const auto port = XdpPort::open({interface_of(0), address_of(0, false)});
      ::_exit(!port && port.error() == is_unsupported(Unsupported::rights).error() ? 0 : 1);
      return 0;
    });
    ::_exit(refused);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(XdpLibrary, SaysWhatIsMissing) {
  for (const auto& [xdp, bpf] :
       {std::pair("libnonesuch.so.1", Library::kBpfName),
        std::pair(Library::kXdpName, "libnonesuch.so.1"), std::pair("libc.so.6", "libc.so.6")}) {
    const auto library = Library::load(xdp, bpf);
    ASSERT_FALSE(library);
    EXPECT_EQ(library.error(), is_unsupported(Unsupported::library).error());
  }
  EXPECT_THAT(std::string(explain(Unsupported::library)), HasSubstr("libxdp1"));
  EXPECT_EQ(explain(static_cast<Unsupported>(1)), "");
}

using XdpPortsConcurrency = XdpTest;

// Both sides sleep until the other wakes them; if one did not, the test would take for ever.
TEST_F(XdpPortsConcurrency, SleepersAreWoken) {
  constexpr std::uint64_t kLong = 3'600'000'000'000;
  constexpr std::uint64_t kRounds = 1000;
  const Port far = open(1);
  const Port near = open(0);
  meet(*near, *far);
  meet(*far, *near);
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const Bytes packet(64, std::byte{7});
      ASSERT_TRUE(send(*near, far->address(), packet));
      near->flush();
      while (take(*near).empty()) near->wait(kLong);
    }
    done.store(true);
    far->wake();
  });
  std::uint64_t answered = 0;
  while (!done.load()) {
    for (const Came& came : take(*far)) {
      ASSERT_TRUE(send(*far, came.from, came.bytes));
      ++answered;
    }
    far->flush();
    if (!done.load()) far->wait(kLong);
  }
  other.join();
  EXPECT_EQ(answered, kRounds);
}

// The kernel fills rings on one core while they are emptied on another; what it has no room for is
// lost.
TEST_F(XdpPortsConcurrency, AFloodIsTakenWhileItComes) {
  const Port far = open(1);
  const Port near = open(0);
  meet(*near, *far);
  std::atomic<bool> enough{false};
  std::thread other([&] {
    const Bytes packet(64, std::byte{7});
    while (!enough.load()) {
      for (int i = 0; i < 64 && send(*near, far->address(), packet); ++i) {
      }
      near->flush();
    }
  });
  const std::uint64_t until = far->counters().received + 100'000;
  while (far->counters().received < until) static_cast<void>(far->receive());
  enough.store(true);
  other.join();
  EXPECT_EQ(far->counters().not_ours + far->counters().wrong_icrc, 0u);
}

}  // namespace
}  // namespace espalier::fabric::xdp
