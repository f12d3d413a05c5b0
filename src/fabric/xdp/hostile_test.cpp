// SPDX-License-Identifier: Apache-2.0
// Frames that are not as they should be, put onto the cable as they are: the program passes to the
// kernel what is not whole UDP for the port, the port drops what is wrong, and a good packet behind
// each of them arrives.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/xdp/filter.hpp"
#include "fabric/xdp/interface.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"

namespace espalier::fabric::xdp {
namespace {

/// What becomes of a frame.
enum class Fate : std::uint8_t { received, not_ours, wrong_icrc, to_the_kernel };

class XdpHostile : public XdpTest {
 protected:
  void SetUp() override {
    XdpTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    mac_ = network->at(0, [] { return Interface::find("veth0"); })->mac;
    socket_ = network->at(1, [] {
      memory::Descriptor made(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      sockaddr_ll at{};
      at.sll_family = AF_PACKET;
      at.sll_ifindex = static_cast<int>(::if_nametoindex("veth1"));
      EXPECT_EQ(::bind(made.number(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
      return made;
    });
  }

  /// A good frame to the port.
  Bytes frame(bool is_v6, std::size_t ib_bytes = 64) {
    roce::FrameHeader header;
    header.destination = mac_;
    header.source = {2, 0, 0, 0, 0, 1};
    header.flow = {address_of(1, is_v6).ip, address_of(0, is_v6).ip, 5000, 4791, true};
    header.ip_id = static_cast<std::uint16_t>(random());
    Bytes made(roce::frame_header_bytes(header) + ib_bytes);
    const std::size_t begin = roce::write_frame_header(made.data(), header, ib_bytes);
    const std::span ib = std::span(made).subspan(begin);
    random.fill(ib);
    if (ib_bytes >= 16) roce::Icrc(header.flow).seal(ib, header.ip_id);
    return made;
  }
  void put(const Bytes& bytes) {
    ASSERT_EQ(::send(socket_.number(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Puts it onto the cable, and behind it a good one, whose coming shows that it has come too.
  void expect_fate(XdpPort& port, const Bytes& bytes, Fate fate) {
    const XdpCounters before = port.counters();
    const bool is_v6 = port.address().ip.is_v6;
    put(bytes);
    const Bytes last = frame(is_v6, 256);
    put(last);
    bool came = false;
    while (!came) {
      for (const roce::Arrived& arrived : port.receive()) came = came || arrived.ib.size() == 256;
    }
    const XdpCounters& after = port.counters();
    EXPECT_EQ(after.received - before.received, fate == Fate::received ? 2u : 1u);
    EXPECT_EQ(after.not_ours - before.not_ours, fate == Fate::not_ours ? 1u : 0u);
    EXPECT_EQ(after.wrong_icrc - before.wrong_icrc, fate == Fate::wrong_icrc ? 1u : 0u);
  }

  roce::MacAddress mac_{};
  memory::Descriptor socket_;
};

template <class T>
void set(Bytes& bytes, std::size_t at, T value) {
  base::store_be(bytes.data() + at, value);
}

/// The checksum of IPv4's header, made anew behind a change.
Bytes mended(Bytes bytes) {
  std::uint32_t sum = 0;
  set<std::uint16_t>(bytes, 24, 0);
  for (std::size_t at = 14; at < 34; at += 2) {
    sum += base::load_be<std::uint16_t>(bytes.data() + at);
  }
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  set(bytes, 24, static_cast<std::uint16_t>(~sum));
  return bytes;
}

TEST_F(XdpHostile, FramesOfV4) {
  for (const bool native : {true, false}) {
    const Port port = open(0, false, native);
    const auto changed = [&](std::size_t at, std::uint8_t value) {
      Bytes bytes = frame(false);
      bytes[at] = std::byte{value};
      return mended(std::move(bytes));
    };
    expect_fate(*port, frame(false), Fate::received);
    Bytes bytes = frame(false);
    bytes.back() ^= std::byte{1};
    expect_fate(*port, bytes, Fate::wrong_icrc);
    // Ethernet fills up short frames.
    bytes = frame(false);
    bytes.resize(bytes.size() + 9);
    expect_fate(*port, bytes, Fate::received);
    // Options, fragments first and later, another protocol, another version.
    expect_fate(*port, changed(14, 0x46), Fate::to_the_kernel);
    expect_fate(*port, changed(14, 0x65), Fate::to_the_kernel);
    expect_fate(*port, changed(20, 0x20), Fate::to_the_kernel);
    expect_fate(*port, changed(20, 0x80), Fate::to_the_kernel);
    expect_fate(*port, changed(21, 0x01), Fate::to_the_kernel);
    expect_fate(*port, changed(23, 6), Fate::to_the_kernel);
    // Another address, another port, another type of frame.
    expect_fate(*port, changed(33, 3), Fate::to_the_kernel);
    expect_fate(*port, changed(37, 0xB6), Fate::to_the_kernel);
    expect_fate(*port, changed(13, 6), Fate::to_the_kernel);
    // Lengths that disagree: of IP, of UDP.
    expect_fate(*port, changed(17, 60), Fate::not_ours);
    expect_fate(*port, changed(17, 255), Fate::not_ours);
    expect_fate(*port, changed(17, 10), Fate::not_ours);
    expect_fate(*port, changed(39, 7), Fate::not_ours);
    expect_fate(*port, changed(39, 73), Fate::not_ours);
    // A wrong checksum of IP, and one of UDP, which is not checked.
    bytes = frame(false);
    bytes[24] ^= std::byte{1};
    expect_fate(*port, bytes, Fate::not_ours);
    bytes = frame(false);
    bytes[40] ^= std::byte{1};
    expect_fate(*port, bytes, Fate::received);
    // VLANs are other networks.
    bytes = frame(false);
    bytes.insert(bytes.begin() + 12, {std::byte{0x81}, std::byte{0}, std::byte{0}, std::byte{5}});
    expect_fate(*port, bytes, Fate::to_the_kernel);
    // A time to live and a class of traffic of any kind: routers change them.
    expect_fate(*port, changed(22, 1), Fate::received);
    expect_fate(*port, changed(15, 0xFF), Fate::received);
  }
}

TEST_F(XdpHostile, FramesOfV6) {
  const Port port = open(0, true);
  const auto changed = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = frame(true);
    bytes[at] = std::byte{value};
    return bytes;
  };
  expect_fate(*port, frame(true), Fate::received);
  Bytes bytes = frame(true);
  bytes.back() ^= std::byte{1};
  expect_fate(*port, bytes, Fate::wrong_icrc);
  expect_fate(*port, changed(14, 0x45), Fate::to_the_kernel);
  expect_fate(*port, changed(20, 0), Fate::to_the_kernel);
  expect_fate(*port, changed(20, 44), Fate::to_the_kernel);
  for (const std::size_t at : {38, 42, 46, 50, 53}) {
    expect_fate(*port, changed(at, 0xAA), Fate::to_the_kernel);
  }
  expect_fate(*port, changed(57, 0xB6), Fate::to_the_kernel);
  expect_fate(*port, changed(19, 0), Fate::not_ours);
  expect_fate(*port, changed(19, 0xFF), Fate::not_ours);
  expect_fate(*port, changed(59, 0), Fate::not_ours);
  // The flow's label, its class, the hops.
  expect_fate(*port, changed(15, 0x7A), Fate::received);
  expect_fate(*port, changed(21, 1), Fate::received);
}

TEST_F(XdpHostile, FramesOfAllLengths) {
  const Port port = open(0);
  const Bytes whole = frame(false);
  for (std::size_t bytes = 14; bytes < whole.size(); ++bytes) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    expect_fate(*port, part, bytes < 42 ? Fate::to_the_kernel : Fate::not_ours);
  }
  for (const std::size_t bytes : {0, 1, 4, 15}) {
    expect_fate(*port, frame(false, bytes), Fate::wrong_icrc);
  }
  expect_fate(*port, frame(false, 1400), Fate::received);
}

// Any bytes at all, to the port as far as the program can see: each is counted, none is believed.
TEST_F(XdpHostile, NoiseIsCountedAndNothingElse) {
  const Port port = open(0);
  std::uint64_t wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    Bytes bytes = frame(false, 16 + random.below(1000));
    for (std::uint64_t changes = 1 + random.below(8); changes != 0; --changes) {
      const std::size_t at = 14 + random.below(bytes.size() - 14);
      bytes[at] ^= std::byte{static_cast<std::uint8_t>(1 + random.below(255))};
    }
    const Bytes last = frame(false, 1020 + 4 * (static_cast<std::size_t>(i) % 100));
    put(bytes);
    put(last);
    bool came = false;
    while (!came) {
      for (const roce::Arrived& arrived : port->receive()) {
        came = came || std::memcmp(arrived.ib.data(), last.data() + 42,
                                   std::min(arrived.ib.size(), last.size() - 42)) == 0;
      }
    }
    wrong = port->counters().not_ours + port->counters().wrong_icrc;
  }
  EXPECT_GT(wrong, 500u);
}

// Requests with many spoofed addresses: the kernel is asked for few of them, and peers in use stay
// in the cache.
TEST_F(XdpHostile, AFloodOfNamesDisplacesNobody) {
  const Port port = open(0);
  const auto far = open_udp(1);
  meet(*port, *far);
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    roce::IpAddress unknown_peer = roce::IpAddress::v4(10, 77, 0, 0);
    unknown_peer.bytes[2] = static_cast<std::uint8_t>(i >> 8);
    unknown_peer.bytes[3] = static_cast<std::uint8_t>(i);
    if (unknown_peer == far->address().ip) continue;
    ASSERT_TRUE(send(*port, {unknown_peer, 4791}, noise(64)));
    if (i % 100 != 0) continue;
    port->flush();
    const std::uint64_t unknown = port->counters().unknown;
    ASSERT_TRUE(send(*port, far->address(), noise(64)));
    EXPECT_EQ(port->counters().unknown, unknown);
  }
  port->flush();
  while (!take(*far).empty()) {
  }
  expect_way(*port, *far);
}

}  // namespace
}  // namespace espalier::fabric::xdp
