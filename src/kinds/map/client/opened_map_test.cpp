// SPDX-License-Identifier: Apache-2.0
// What a client believes of a node's answer to map_open.
#include "kinds/map/client/opened_map.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.hpp"
#include "kinds/map/map_forms.hpp"

namespace espalier::client {
namespace {

Reply answer(const std::string& shard_map) {
  Reply reply;
  reply.header.version = 9;
  const wire::MapShape shape = tree::shape_of(MapOptions{}, 460);
  reply.payload = std::string(base::bytes_of(shape)) + shard_map;
  return reply;
}

wire::ShardMap map_of(std::size_t shards) {
  wire::ShardMap map;
  map.uid = 1;
  for (std::size_t i = 0; i < shards; ++i) {
    map.shards.push_back({i == 0 ? std::string() : std::string(1, static_cast<char>(i)),
                          "unix:" + std::to_string(i)});
  }
  return map;
}

TEST(OpenedMap, AWholeMapHasNoShardMap) {
  const auto opened = OpenedMap::read(answer({}));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->id, 9u);
  EXPECT_EQ(opened->shape.key_bytes_max, 460u);
  EXPECT_FALSE(opened->shard);
}

TEST(OpenedMap, AMapOfAGroupHasItsName) {
  Reply reply = answer("bank");
  EXPECT_FALSE(OpenedMap::read(reply)) << "a name, and no shard map";
  wire::MapShape shape = tree::shape_of(MapOptions{}, 460);
  shape.group_bytes = 4;
  reply.payload = std::string(base::bytes_of(shape)) + "bank";
  const auto opened = OpenedMap::read(reply);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened->shard);
  EXPECT_EQ(opened->options().group, "bank");
  for (const std::string_view behind : {"", "ban", "banks"}) {
    reply.payload = std::string(base::bytes_of(shape)).append(behind);
    EXPECT_FALSE(OpenedMap::read(reply)) << behind;
  }
  shape.versions = 0;
  reply.payload = std::string(base::bytes_of(shape)) + "bank";
  EXPECT_FALSE(OpenedMap::read(reply)) << "without versions";
}

TEST(OpenedMap, AShardHasOne) {
  const auto opened = OpenedMap::read(answer(wire::bytes_of(map_of(64))));
  ASSERT_TRUE(opened);
  ASSERT_TRUE(opened->shard);
  EXPECT_TRUE(opened->shard->same(map_of(64)));
}

TEST(OpenedMap, WhatALyingNodeSaysIsCorrupt) {
  const auto refused = [](const std::string& bytes, wire::ShardFault fault) {
    const auto opened = OpenedMap::read(answer(bytes));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error(), (Error{Code::corrupt, 0, 100 + static_cast<std::uint32_t>(fault)}));
  };
  wire::ShardMap descending = map_of(3);
  std::swap(descending.shards[1], descending.shards[2]);
  refused(wire::bytes_of(descending), wire::ShardFault::border_order);
  refused(wire::bytes_of(map_of(65)), wire::ShardFault::bad_count);
  refused("x", wire::ShardFault::too_short);
  Reply cut = answer({});
  cut.payload.pop_back();
  EXPECT_EQ(OpenedMap::read(cut).error(), (Error{Code::corrupt, 0, 0}));
}

}  // namespace
}  // namespace espalier::client
