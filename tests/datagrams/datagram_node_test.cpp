// SPDX-License-Identifier: Apache-2.0
// Gets by datagrams between clients and a node over sockets: which requests travel in datagrams,
// which go through the rings instead, and the lifetime of sessions.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "client/store_impl.hpp"
#include "engine/datagram_sessions.hpp"
#include "espalier/espalier.h"
#include "fabric/roce/udp_address.hpp"
#include "memory/shared_memory.hpp"
#include "node/metrics.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

class DatagramNode : public NodeFixture {
 protected:
  [[nodiscard]] offload::DatagramSessions& sessions() {
    return node_->services().part<offload::DatagramSessions>();
  }
  [[nodiscard]] std::uint64_t answered() { return sessions().counts.answered; }
  /// Gets that went by the rings after all.
  [[nodiscard]] static std::uint64_t by_rings(const Store& store) {
    return client::StoreImpl::of(store).read_traffic().by_rings;
  }
  /// Calls `get` until so many gets have travelled so: a busy machine may lose some, and then
  /// nothing does for a while.
  template <class Get>
  static void expect_datagrams(const offload::DatagramSessions& of, const Get& get) {
    constexpr std::uint64_t kTimes = 100;
    constexpr std::uint64_t kTimeoutNs = 60'000'000'000;
    const std::uint64_t before = of.counts.answered;
    const base::Stopwatch watch;
    while (of.counts.answered - before < kTimes) {
      ASSERT_NO_FATAL_FAILURE(get());
      ASSERT_LT(watch.elapsed_ns(), kTimeoutNs) << of.counts.answered - before;
    }
  }
  void expect_datagrams(Map& map, const std::string& key, const std::string& value) {
    expect_datagrams(sessions(), [&] {
      const auto found = map.get(key);
      ASSERT_TRUE(found) << message(found.error());
      ASSERT_TRUE(*found);
      ASSERT_EQ((*found)->value, value);
    });
  }
};

class DatagramsBeside : public DatagramNode, public ::testing::WithParamInterface<const char*> {
 protected:
  DatagramsBeside() { reach_by(std::string(GetParam()) + "_datagram"); }
};
INSTANTIATE_TEST_SUITE_P(By, DatagramsBeside, ::testing::Values("unix", "shm", "roce", "memif"),
                         way_name);

// For each transport of the rings.
TEST_P(DatagramsBeside, GetsTravelInOneDatagramEach) {
  start();
  {
    Store store = connect();
    Map map = *store.create_map("m");
    const Version written = map.put("a", "1")->version;
    expect_datagrams(map, "a", "1");
    const auto found = map.get("a");
    EXPECT_EQ((*found)->version, written);
    const auto absent = map.get("b");
    ASSERT_TRUE(absent) << message(absent.error());
    EXPECT_FALSE(*absent);
    EXPECT_EQ(sessions().size(), 1u);
  }
  // Sessions end with their connections.
  while (sessions().size() != 0) std::this_thread::yield();
  expect_all_came_back();
}

// Both ends have a key of what they have proven, which is not sent.
TEST_F(DatagramNode, ClientsThatProveASecretHaveAnotherKey) {
  reach_by("roce_datagram");
  ask_for_secrets();
  start();
  Store store = connect();
  Map map = *store.create_map("m");
  ASSERT_TRUE(map.put("a", "1"));
  expect_datagrams(map, "a", "1");
}

TEST_F(DatagramNode, OverIPv6) {
  reach_by("datagram");
  config_.node.datagrams = "[::1]:0";
  start();
  EXPECT_TRUE(node_->datagrams()->address().ip.is_v6);
  Store store = connect();
  Map map = *store.create_map("m");
  ASSERT_TRUE(map.put("a", "1"));
  expect_datagrams(map, "a", "1");
}

TEST_F(DatagramNode, WhatIsTooLongGoesByTheRings) {
  reach_by("datagram");
  start();
  Store store = connect();
  Map map = *store.create_map("m");
  const std::string fits(wire::kDatagramValueBytesMax, 'f');
  const std::string is_longer(wire::kDatagramValueBytesMax + 1, 'l');
  ASSERT_TRUE(map.put("fits", fits));
  ASSERT_TRUE(map.put("long", is_longer));
  expect_datagrams(map, "fits", fits);
  EXPECT_EQ((*map.get("long"))->value, is_longer);
  EXPECT_GE(by_rings(store), 1u);
  // So do keys that no map has, and those of maps without versions.
  const auto refused = map.get(std::string(3000, 'k'));
  EXPECT_EQ(refused.error().code, Code::key_too_long);
  Map plain = *store.create_map("plain", {.versions = false});
  ASSERT_TRUE(plain.put("a", "1"));
  const std::uint64_t before = answered();
  EXPECT_EQ((*plain.get("a"))->value, "1");
  EXPECT_EQ(answered(), before);
}

TEST_F(DatagramNode, FloorsAndShortScansTravelSoToo) {
  reach_by("datagram");
  start();
  Store store = connect();
  Map map = *store.create_map("m");
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(map.put("key" + std::to_string(1000 + i), std::to_string(i)));
  }
  expect_datagrams(sessions(), [&] {
    const auto floor = map.floor("key1077 and more");
    ASSERT_TRUE(floor) << message(floor.error());
    ASSERT_TRUE(*floor);
    ASSERT_EQ((*floor)->key, "key1077");
    ASSERT_EQ((*floor)->value, "77");
    const auto none = map.floor("a");
    ASSERT_TRUE(none) << message(none.error());
    ASSERT_FALSE(*none);
  });
  const auto scan = [&](std::uint32_t limit) {
    std::vector<std::string> keys;
    const auto scanned = map.scan(
        "key1100", "key1190",
        [&](std::span<const Item> items) {
          for (const Item& item : items) keys.emplace_back(item.key);
          return true;
        },
        {.limit = limit});
    EXPECT_TRUE(scanned) << message(scanned.error());
    EXPECT_EQ(scanned.value_or(0), keys.size());
    EXPECT_EQ(keys.size(), std::min<std::size_t>(limit == 0 ? 90 : limit, 90));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      EXPECT_EQ(keys[i], "key" + std::to_string(1100 + i));
    }
  };
  expect_datagrams(sessions(), [&] { scan(10); });
  // More items than a datagram may have, or has room for.
  for (const std::uint32_t limit : {0u, 64u, 80u}) scan(limit);
}

TEST_F(DatagramNode, WhatIsNotPermittedIsSaidByTheRings) {
  reach_by("roce_datagram");
  ask_for_secrets();
  const std::string lines = "client admin 0" + std::string(62, 'a') + "0\nother read 0" +
                            std::string(62, 'b') + "0 other*\n";
  config_.clients.secrets = (folder_ / "both.secrets").string();
  std::ofstream(config_.clients.secrets) << lines;
  ASSERT_EQ(::chmod(config_.clients.secrets.c_str(), 0600), 0);
  start();
  {
    Store admin = connect();
    Map map = *admin.create_map("m");
    ASSERT_TRUE(map.put("a", "1"));
    ASSERT_TRUE(admin.create_map("other/m"));
  }
  StoreOptions options;
  options.access = Access::datagram;
  const std::string path = (folder_ / "other.secret").string();
  std::ofstream(path) << "other read 0" << std::string(62, 'b') << "0\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  options.secret = *ClientSecret::read_file(path);
  auto store = Store::connect(address(), options);
  ASSERT_TRUE(store) << message(store.error());
  Map other = *store->open_map("other/m");
  const auto found = other.get("a");
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_FALSE(*found);
  EXPECT_EQ(store->open_map("m").error().code, Code::not_permitted);
}

TEST_F(DatagramNode, ANodeThatTakesNoneSaysSo) {
  start();
  const auto store = Store::connect(address(), {.access = Access::datagram});
  EXPECT_EQ(store.error().code, Code::unsupported);
  EXPECT_EQ(node_->datagrams(), nullptr);
}

TEST_F(DatagramNode, APortThatIsTakenIsSaid) {
  reach_by("datagram");
  start();
  node::Config second = node_config(folder_);
  second.node.socket += "2";
  second.node.datagrams = fabric::roce::to_text(node_->datagrams()->address());
  std::string failed;
  const auto refused = node::Node::start(second, {.failed_address = &failed});
  EXPECT_EQ(refused.error().code, Code::already_exists);
  EXPECT_EQ(failed, second.node.datagrams);
}

// Another node at the same addresses has other sessions.
TEST_F(DatagramNode, ANodeThatStartsAnewIsAskedAnew) {
  reach_by("datagram");
  start();
  config_.node.datagrams = fabric::roce::to_text(node_->datagrams()->address());
  Store store = connect();
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("a", "1"));
  expect_datagrams(map, "a", "1");
  start();
  const auto lost = map.get("a");
  if (lost) {
    EXPECT_FALSE(*lost);  // it had noticed
  } else {
    EXPECT_EQ(lost.error().code, Code::connection_lost);
  }
  ASSERT_TRUE(map.put("a", "2"));
  expect_datagrams(map, "a", "2");
}

TEST_F(DatagramNode, EachShardIsAskedSo) {
  reach_by("sharded_datagram");
  start();
  make_sharded("s", {}, {"m"});
  Store store = connect();
  Map map = *store.open_map("s");
  ASSERT_TRUE(map.put("a", "1"));
  ASSERT_TRUE(map.put("z", "2"));
  expect_datagrams(map, "a", "1");
  const auto& other = others_.front()->services().part<offload::DatagramSessions>();
  expect_datagrams(other, [&] { ASSERT_EQ((*map.get("z"))->value, "2"); });
}

TEST_F(DatagramNode, TheCApiAsksSoToo) {
  reach_by("datagram");
  start();
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.access = ESPALIER_ACCESS_DATAGRAM;
  espalier_store* store = nullptr;
  ASSERT_EQ(espalier_store_open(address().c_str(), &options, &store), ESPALIER_OK)
      << espalier_error_message();
  espalier_map* map = nullptr;
  ASSERT_EQ(espalier_map_open(store, {"default", 7}, &map), ESPALIER_OK);
  espalier_item* item = nullptr;
  ASSERT_EQ(espalier_item_create(&item), ESPALIER_OK);
  std::uint32_t found = 1;
  expect_datagrams(sessions(), [&] {
    ASSERT_EQ(espalier_map_get(map, {"a", 1}, item, &found), ESPALIER_OK);
    ASSERT_EQ(found, 0u);
  });
  espalier_item_destroy(item);
  espalier_map_close(map);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
}

// Arbitrary bytes from any address get no reply; correct requests are answered.
TEST_F(DatagramNode, WhoHasNoSessionIsNotAnswered) {
  reach_by("datagram");
  start();
  Store store = connect();
  Map map = *store.create_map("m");
  ASSERT_TRUE(map.put("a", "1"));
  memory::Descriptor peer(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const fabric::roce::SocketAddress port(node_->datagrams()->address());
  ASSERT_EQ(::connect(peer.number(), port.get(), port.bytes), 0);
  base::Random random(seed_from_environment(45));
  for (int i = 0; i < 2000; ++i) {
    wire::DatagramRequest header{};
    header.magic = wire::kDatagramMagic;
    header.version = wire::kDatagramVersion;
    header.kind = static_cast<std::uint8_t>(random.between(1, 3));
    header.key_bytes = wire::kChallengeBytes;
    header.session = random();
    header.number = random();
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.resize(random.below(4) == 0 ? random.below(1600) : bytes.size() + header.key_bytes, 'x');
    ASSERT_GE(::send(peer.number(), bytes.data(), bytes.size(), 0), 0);
    if (i % 100 == 0) {
      ASSERT_EQ((*map.get("a"))->value, "1");
    }
  }
  expect_datagrams(map, "a", "1");
  char any[64];
  EXPECT_LT(::recv(peer.number(), any, sizeof any, 0), 0);
  EXPECT_GT(sessions().counts.dropped, 0u);
  const node::NodeNumbers numbers = node::numbers_of(*node_);
  EXPECT_EQ(numbers.value("datagram_sessions"), 1u);
}

}  // namespace
}  // namespace espalier::test
