// SPDX-License-Identifier: Apache-2.0
// Rings of a node with a small store: they are part of its memory, and are smaller when memory is
// short, over every transport.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/connection_limits.hpp"
#include "espalier/map.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/raw_client.hpp"
#include "tests/support/sizes.hpp"
#include "wire/ring.hpp"

namespace espalier::test {
namespace {

class SmallRings : public NodeFixture {
 protected:
  SmallRings() { config_.memory.limit = 64 * kMiB; }

  using Numbers = offload::ConnectionLimits::Numbers;
  [[nodiscard]] Numbers taken() const { return node_->services().connections.numbers(); }
  /// Connects by the UNIX socket until rings may take no more than so many further bytes.
  void fill(std::uint64_t left) {
    while (taken().ring_bytes_max - taken().ring_bytes > left) {
      auto client = RawClient::open(socket(), kUsual);
      ASSERT_TRUE(client) << message(client.error());
      clients_.push_back(std::move(*client));
    }
  }

  static constexpr wire::ConnectionLayout kUsual{512, 1024, wire::kResponseRingsMax};
  std::vector<std::unique_ptr<RawClient>> clients_;
};

TEST_F(SmallRings, GetSmallerAsMoreClientsCome) {
  start();
  EXPECT_EQ(taken().ring_bytes_max, 32 * kMiB);
  fill(8 * kMiB);
  ASSERT_GT(clients_.size(), 30u);
  const wire::Welcome& first = clients_.front()->welcome();
  EXPECT_EQ(first.request_slots, kUsual.request_slots);
  EXPECT_EQ(first.response_slots, kUsual.response_slots);
  const wire::Welcome& last = clients_.back()->welcome();
  EXPECT_LT(last.response_slots, kUsual.response_slots / 2);
  EXPECT_EQ(last.response_rings, kUsual.response_rings);
  wire::RequestHeader header{};
  header.offload = static_cast<std::uint8_t>(wire::OffloadId::noop);
  const auto answer = clients_.back()->call(header);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->code(), Code::invalid);
  EXPECT_LE(taken().ring_bytes, taken().ring_bytes_max);
}

// Over a fabric the client's hello has the sizes of the rings, and is refused if they are too
// large.
TEST_F(SmallRings, AreAskedForByAClientThatWasRefusedLargerOnes) {
  config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  start();
  fill(kUsual.bytes() / 2);
  const std::uint64_t before = taken().ring_bytes;
  const auto store = Store::connect(config_.node.fabric);
  ASSERT_TRUE(store) << message(store.error());
  const std::uint64_t rings = taken().ring_bytes - before;
  EXPECT_GT(rings, 0u);
  EXPECT_LE(rings, kUsual.bytes() / 2);
  auto map = store->open_map("default");
  ASSERT_TRUE(map && map->put("k", std::string(100'000, 'v')));
  EXPECT_EQ((*map->get("k"))->value.size(), 100'000u);
}

TEST_F(SmallRings, AreRefusedWhereTheSmallestAreTooLarge) {
  config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  config_.clients.ring_bytes_max = 64 << 10;
  start();
  const auto store = Store::connect(config_.node.fabric);
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::out_of_memory);
  EXPECT_NE(message(store.error()).find("clients.ring_bytes_max"), std::string::npos);
}

}  // namespace
}  // namespace espalier::test
