// SPDX-License-Identifier: Apache-2.0
// Two network stacks with a cable between them (roce/network_namespaces.hpp), and ports of AF_XDP
// and of UDP at its ends, for tests. Where the machine allows no such thing they are skipped, and
// say what was missing.
//
// Thread: one, but where a test says otherwise.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/xdp/library.hpp"
#include "fabric/xdp/port.hpp"

namespace espalier::fabric::xdp {

using Bytes = std::vector<std::byte>;

inline std::string interface_of(int side) { return "veth" + std::to_string(side); }

inline roce::PortAddress address_of(int side, bool is_v6) {
  const auto last = static_cast<std::uint8_t>(side + 1);
  if (!is_v6) return {roce::IpAddress::v4(10, 77, 0, last), wire::roce::kUdpPort};
  return {roce::IpAddress::v6({0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}),
          wire::roce::kUdpPort};
}

/// Sends a packet, which may get lost. Returns whether there was room.
inline bool send(roce::PacketPort& from, const roce::PortAddress& to, const Bytes& bytes) {
  std::byte* const at = from.begin(to, bytes.size());
  if (at == nullptr) return false;
  std::copy(bytes.begin(), bytes.end(), at);
  from.seal();
  return true;
}

struct Came {
  roce::PortAddress from;
  Bytes bytes;  // without the ICRC
};
inline std::vector<Came> take(roce::PacketPort& port) {
  std::vector<Came> came;
  for (const roce::Arrived& arrived : port.receive()) {
    came.push_back({arrived.from, {arrived.ib.begin(), arrived.ib.end() - 4}});
  }
  return came;
}

class XdpTest : public ::testing::Test {
 protected:
  using Port = std::unique_ptr<XdpPort>;

  XdpTest() : random(base::seed_from_environment(94)) {}

  void SetUp() override {
    std::string why;
    network = roce::NetworkNamespaces::open(why);
    if (!network) GTEST_SKIP() << why;
    const auto tried = try_open(0, {interface_of(0), address_of(0, false)});
    if (!tried && tried.error().code == Code::unsupported) {
      GTEST_SKIP() << explain(static_cast<Lack>(tried.error().detail));
    }
    ASSERT_TRUE(tried) << message(tried.error());
  }

  [[nodiscard]] Result<Port> try_open(int side, const XdpPortOptions& options) const {
    return network->at(side, [&] { return XdpPort::open(options); });
  }
  [[nodiscard]] Port open(int side, bool is_v6 = false, bool native = true) const {
    auto port = try_open(side, {interface_of(side), address_of(side, is_v6), native});
    EXPECT_TRUE(port) << message(port.error());
    return std::move(*port);
  }
  [[nodiscard]] std::unique_ptr<roce::UdpPort> open_udp(int side, bool is_v6 = false) const {
    return *network->at(side, [&] { return roce::UdpPort::open({address_of(side, is_v6), true}); });
  }
  Bytes noise(std::size_t bytes) {
    Bytes made(bytes);
    random.fill(made);
    return made;
  }
  /// Sends until one has come, for neighbours must find each other first; and takes all that come.
  void meet(roce::PacketPort& from, roce::PacketPort& to) {
    const Bytes hello = noise(64);
    do {
      ASSERT_TRUE(send(from, to.address(), hello));
      from.flush();
    } while (take(to).empty());
    while (!take(to).empty()) {
    }
  }
  /// One packet arrives, as it was.
  void expect_way(roce::PacketPort& from, roce::PacketPort& to) {
    const Bytes sent = noise(64 + 4 * random.below(200));
    ASSERT_TRUE(send(from, to.address(), sent));
    from.flush();
    std::vector<Came> came;
    while (came.empty()) came = take(to);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].from, from.address());
    EXPECT_EQ(came[0].bytes, sent);
  }

  base::Random random;
  std::unique_ptr<roce::NetworkNamespaces> network;
};

}  // namespace espalier::fabric::xdp
