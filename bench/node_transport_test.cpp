// SPDX-License-Identifier: Apache-2.0
#include "bench/node_transport.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bench/noop_client.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

TEST(NodeTransport, HaveNames) {
  std::string names;
  for (const NodeTransport transport : all_node_transports()) {
    EXPECT_EQ(parse_node_transport(name(transport)), transport);
    names += (names.empty() ? "" : ", ") + std::string(name(transport));
  }
  EXPECT_EQ(node_transport_names(), names);
  EXPECT_EQ(name(NodeTransport::unix_socket), "unix");
  for (const char* text : {"", "roce", "Unix", "shm-", "unix-send"}) {
    EXPECT_EQ(parse_node_transport(text), std::nullopt) << text;
  }
}

TEST(NodeTransportConcurrency, EveryWorkerIsReachedOnEachOfThem) {
  for (const NodeTransport transport : all_node_transports()) {
    SCOPED_TRACE(name(transport));
    node::Config config = spinning_node_config(2);
    config.node.spin_us = 0;  // two workers and a client on few cores
    prepare(config, transport);
    const auto node = start_own_node(config);
    std::set<std::string> addresses;
    for (std::uint32_t client = 0; client < 4; ++client) {
      const std::string address = address_of(*node, transport, client);
      addresses.insert(address);
      NoopClient noops(address, {});
      EXPECT_EQ(noops.keep_in_flight(3), 3u) << address;
    }
    EXPECT_EQ(addresses.size(), transport == NodeTransport::unix_socket ? 1u : 2u);
  }
}

}  // namespace
}  // namespace espalier::bench
