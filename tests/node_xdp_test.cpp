// SPDX-License-Identifier: Apache-2.0
// A node and its clients at the two ends of a cable, whose frames bypass both network stacks. An
// interface has one connection at a time, so there is one client, with one request at a time: a
// snapshot would need a connection of its own.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fabric/roce/network_namespaces.hpp"
#include "fabric/xdp/testing/xdp_fixture.hpp"
#include "kinds/map/write/audit.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

using fabric::roce::NetworkNamespaces;

class NodeXdpTest : public NodeFixture {
 protected:
  void SetUp() override {
    if (const std::string missing = fabric::xdp::open_cable(network_); !missing.empty()) {
      // Not every machine lets us make namespaces with AF_XDP; tests/skips.txt lists these.
      GTEST_SKIP() << missing;
    }
    config_.clients.open = true;
    config_.node.fabric = "roce+xdp://" + NetworkNamespaces::interface_of(1) + "/10.77.0.2/1";
    network_->at(1, [this] {
      start();
      return true;
    });
    ASSERT_NE(node_, nullptr);
  }
  /// A client's store, through such an address.
  Result<Store> open_from_other_side(const std::string& more = {}) {
    const std::string address =
        "roce+xdp://" + NetworkNamespaces::interface_of(0) + "/10.77.0.2/1" + more;
    return network_->at(0, [&] { return Store::connect(address); });
  }

  /// Waits until the client is gone, and audits the store.
  void expect_gone() {
    while (node_->connections() != 0 || in_flight() != 0) std::this_thread::yield();
    EXPECT_EQ(tree::audit_store(node_->store()), std::vector<std::string>{});
  }

  std::unique_ptr<NetworkNamespaces> network_;
};

void expect_served(Store& store) {
  auto map = store.open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  constexpr int kItems = 2000;
  for (int i = 0; i < kItems; ++i) {
    const auto put = map->put("key" + std::to_string(10'000 + i), std::string(40, 'v'));
    ASSERT_TRUE(put) << message(put.error());
  }
  ASSERT_TRUE(map->erase("key10007"));
  const std::string large(300'000, 'l');
  ASSERT_TRUE(map->put("large", large));
  EXPECT_EQ(map->get("large")->value().value, large);
  ASSERT_TRUE(map->erase("large"));
  EXPECT_EQ(*map->count({}, {}), kItems - 1);
  std::uint64_t seen = 0;
  EXPECT_EQ(*map->scan({}, {},
                       [&](std::span<const Item> items) {
                         seen += items.size();
                         return true;
                       }),
            kItems - 1);
  EXPECT_EQ(seen, kItems - 1);
}

TEST_F(NodeXdpTest, ServesAClientThroughWrites) {
  {
    auto store = open_from_other_side();
    ASSERT_TRUE(store) << message(store.error());
    expect_served(*store);
  }
  expect_gone();
}

TEST_F(NodeXdpTest, ServesAClientThroughSends) {
  {
    auto store = open_from_other_side("?rings=send");
    ASSERT_TRUE(store) << message(store.error());
    expect_served(*store);
  }
  expect_gone();
}

}  // namespace
}  // namespace espalier::test
