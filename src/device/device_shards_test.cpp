// SPDX-License-Identifier: Apache-2.0
// A device before a node that has one shard of a map: it reads what that shard has, and of other
// keys it says what its host says.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/thread_rings.hpp"
#include "device/testing/device_fixture.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/write/map_object.hpp"

namespace espalier::device {
namespace {

/// Asks for what a client that routes by the shard map asks of another node.
class Asker {
 public:
  Asker(const std::string& socket, std::string_view map) {
    auto connection = client::connect_to(client::parse_node_address("unix:" + socket).value());
    EXPECT_TRUE(connection) << message(connection.error());
    rings_ = client::ThreadRings::open(*std::move(connection)).value();
    client::RemoteRequests requests(*rings_, 1);
    const auto opened = client::open_map_by(requests, map, true);
    EXPECT_TRUE(opened) << message(opened.error());
    map_ = opened->id;
  }
  /// The answer, in words that are the same for the same answers.
  std::string ask(wire::OffloadId id, std::string_view key, std::string_view high) {
    wire::CallMessage request;
    request.offload = id;
    request.map = map_;
    request.key = key;
    request.payload = high;
    client::RemoteRequests requests(*rings_, 1);
    const auto reply = requests.call(request);
    if (!reply) return message(reply.error());
    return std::to_string(reply->header.version) + " " + std::string(reply->payload);
  }

 private:
  std::unique_ptr<client::ThreadRings> rings_;
  std::uint32_t map_ = 0;
};

class DeviceShards : public DeviceFixture {
 protected:
  /// The host has this part of map "s".
  void make_shard(std::uint32_t own) {
    wire::ShardMap map;
    map.uid = 7;
    map.own = own;
    map.shards = {{"", "unix:/before"}, {"d", "unix:/here"}, {"m", "unix:/behind"}};
    map.shards[own].address = "unix:" + device_config_.node.socket;
    ASSERT_TRUE(tree::create_shard(host_->store(), "s", {}, map));
  }
};

struct Asked {
  wire::OffloadId id;
  std::string_view key;
  std::string_view high;
};
constexpr Asked kAsked[] = {
    {wire::OffloadId::get, "c", {}},
    {wire::OffloadId::get, "d", {}},
    {wire::OffloadId::get, "e", {}},
    {wire::OffloadId::get, "m", {}},
    {wire::OffloadId::get, "", {}},
    {wire::OffloadId::floor, "c", {}},
    {wire::OffloadId::floor, "l", {}},
    {wire::OffloadId::floor, "m", {}},
    {wire::OffloadId::scan, "d", "m"},
    {wire::OffloadId::scan, "c", "m"},
    {wire::OffloadId::scan, "d", "n"},
    {wire::OffloadId::scan, "", ""},
    {wire::OffloadId::scan_reverse, "d", "m"},
    {wire::OffloadId::scan_reverse, "d", ""},
    {wire::OffloadId::scan_floor, "d", "m"},
    {wire::OffloadId::scan_floor, "d", "n"},
    {wire::OffloadId::count, "e", "f"},
    {wire::OffloadId::count, "e", "n"},
};

// The first question comes before the device has opened the map, the others after it.
TEST_F(DeviceShards, ItAnswersOfOtherKeysAsItsHostDoes) {
  for (const std::uint32_t own : {0u, 1u, 2u}) {
    start();
    make_shard(own);
    Store store = connect_to_device();
    Map map = *store.open_map("s");
    const std::string border = own == 0 ? "" : own == 1 ? "d" : "m";
    for (const char* const key : {"", "1", "2"}) ASSERT_TRUE(map.put(border + "a" + key, "value"));
    Asker device(device_config_.node.socket, "s");
    Asker host(host_config_.node.socket, "s");
    for (const Asked& asked : kAsked) {
      EXPECT_EQ(device.ask(asked.id, asked.key, asked.high),
                host.ask(asked.id, asked.key, asked.high))
          << "shard " << own << ", offload " << static_cast<int>(asked.id) << ", from '"
          << asked.key << "' to '" << asked.high << "'";
    }
    device_.reset();
  }
}

TEST_F(DeviceShards, ItReadsWhatTheShardHas) {
  start();
  make_shard(1);
  Store store = connect_to_device();
  Map map = *store.open_map("s");
  ASSERT_TRUE(map.put("d", "value"));
  for (int i = 0; i < 10; ++i) EXPECT_EQ((*map.get("d"))->value, "value");
  EXPECT_EQ(*map.count("d", "m"), 1u);
  EXPECT_EQ(host_was_asked(wire::OffloadId::get), 0u);
  EXPECT_EQ(host_was_asked(wire::OffloadId::count), 0u);
}

}  // namespace
}  // namespace espalier::device
