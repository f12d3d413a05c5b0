// SPDX-License-Identifier: Apache-2.0
// Two network stacks with a cable between them (roce/network_namespaces.hpp), and ports of AF_XDP
// and of UDP at its ends, for tests. Where the machine allows no such thing they are skipped, and
// say what was missing.
//
// Thread: one, but where a test says otherwise.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "fabric/roce/testing/port_traffic.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/xdp/library.hpp"
#include "fabric/xdp/port.hpp"

namespace espalier::fabric::xdp {

using roce::Bytes;
using roce::Came;
using roce::send;
using roce::take;

inline constexpr auto interface_of = &roce::NetworkNamespaces::interface_of;
inline constexpr auto address_of = &roce::NetworkNamespaces::address_of;

/// Makes the cable. Returns what this machine lacks for it, or for ports of AF_XDP at its ends;
/// empty: nothing.
inline std::string open_cable(std::unique_ptr<roce::NetworkNamespaces>& network) {
  std::string why;
  network = roce::NetworkNamespaces::open(why);
  if (!network) return why;
  const auto tried = network->at(0, [] {
    return XdpPort::open({interface_of(0), address_of(0, false)});
  });
  if (!tried && tried.error().code == Code::unsupported) {
    return std::string(explain(static_cast<Unsupported>(tried.error().detail)));
  }
  EXPECT_TRUE(tried) << message(tried.error());
  return {};
}

class XdpTest : public ::testing::Test {
 protected:
  using Port = std::unique_ptr<XdpPort>;

  XdpTest() : random(base::seed_from_environment(94)) {}

  void SetUp() override {
    if (const std::string missing = open_cable(network); !missing.empty()) GTEST_SKIP() << missing;
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
