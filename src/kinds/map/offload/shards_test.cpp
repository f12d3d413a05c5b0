// SPDX-License-Identifier: Apache-2.0
// Shards of maps on their node: created, opened by clients that know shards, and restricted to
// their keys.
#include "kinds/map/format/shard.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/map/map_forms.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class ShardOffloads : public testing::Test {
 protected:
  static wire::ShardMap three(std::uint32_t own) {
    wire::ShardMap map;
    map.uid = 7;
    map.own = own;
    map.shards = {{"", "unix:a"}, {"k", "unix:b"}, {"t", "unix:c"}};
    return map;
  }
  Response create(std::string_view name, const std::string& map, MapOptions options = {}) {
    const wire::MapShape shape = tree::shape_of(options);
    return node_.call(client_, request_of(OffloadId::shard_create, 0, ++tag_), name,
                      bytes_of(shape) + map);
  }
  /// Makes the middle one.
  void make() {
    const Response made = create("s", wire::bytes_of(three(1)));
    ASSERT_EQ(made.header.code, 0) << made.payload;
    map_ = static_cast<std::uint32_t>(made.header.version);
  }
  Response call(OffloadId offload, std::string_view key = {}, std::string_view payload = {},
                std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, map_, ++tag_, argument), key, payload);
  }
  void expect_wrong(const Response& response) {
    EXPECT_EQ(response.code(), Code::wrong_shard) << message({response.code(), 0, 0});
    EXPECT_EQ(response.detail(), 1u);
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t map_ = 0;
  std::uint32_t tag_ = 0;
};

TEST_F(ShardOffloads, AreMadeAndOpenedByWhoKnowsThem) {
  make();
  const Response opened = node_.call(client_, request_of(OffloadId::map_open, 0, 1, 1), "s");
  ASSERT_EQ(opened.header.code, 0);
  EXPECT_EQ(opened.header.version, map_);
  ASSERT_GT(opened.payload.size(), sizeof(wire::MapShape));
  EXPECT_EQ(opened.payload.substr(sizeof(wire::MapShape)), wire::bytes_of(three(1)));
  // A client that does not know shards would take a part for the whole map.
  const Response older = node_.call(client_, request_of(OffloadId::map_open, 0, 2, 0), "s");
  EXPECT_EQ(older.code(), Code::unsupported);
  EXPECT_NE(older.payload.find("a shard of this map only"), std::string::npos);
  EXPECT_EQ(node_.call(client_, request_of(OffloadId::map_open, 0, 3, 2), "s").code(),
            Code::invalid_argument);
  // For a map that is not a shard, the answer has nothing more.
  const Response whole = node_.call(client_, request_of(OffloadId::map_open, 0, 4, 1), "m");
  EXPECT_EQ(whole.payload.size(), sizeof(wire::MapShape));
  EXPECT_EQ(create("s", wire::bytes_of(three(1))).code(), Code::already_exists);
  EXPECT_EQ(node_.call(client_, request_of(OffloadId::object_drop, 0, 5, 1), "s").header.code, 0);
  EXPECT_EQ(call(OffloadId::get, "k").code(), Code::not_found);
}

TEST_F(ShardOffloads, RefuseShardMapsThatCannotBe) {
  const auto refused = [&](const Response& response, wire::ShardFault fault) {
    EXPECT_EQ(response.code(), Code::invalid_argument);
    std::uint32_t detail = 0;
    ASSERT_GE(response.payload.size(), sizeof detail);
    std::memcpy(&detail, response.payload.data(), sizeof detail);
    EXPECT_EQ(detail, static_cast<std::uint32_t>(fault));
  };
  wire::ShardMap map = three(1);
  map.shards[2].low = "k";
  refused(create("s", wire::bytes_of(map)), wire::ShardFault::border_order);
  refused(create("s", wire::bytes_of(three(3))), wire::ShardFault::bad_own);
  refused(create("s", wire::bytes_of(three(1)) + "x"), wire::ShardFault::too_long);
  // Keys of small nodes are short, which making the map tells.
  map = three(1);
  map.shards[2].low = std::string(100, 'z');
  MapOptions small;
  small.node_bytes = 512;
  small.log_bytes = 64;
  refused(create("s", wire::bytes_of(map), small), wire::ShardFault::border_too_long);
  wire::MapShape shape = tree::shape_of(MapOptions{});
  shape.versions = 2;
  EXPECT_EQ(node_
                .call(client_, request_of(OffloadId::shard_create, 0, 9), "s",
                      bytes_of(shape) + wire::bytes_of(three(1)))
                .code(),
            Code::invalid_argument);
  // Nothing has come of any of them.
  EXPECT_EQ(node_.call(client_, request_of(OffloadId::map_open, 0, 1, 1), "s").code(),
            Code::not_found);
  EXPECT_EQ(node_.audit(), std::vector<std::string>{});
}

TEST_F(ShardOffloads, KeepToTheirKeys) {
  make();
  wire::Comparison absent{};
  absent.kind = static_cast<std::uint8_t>(ConditionKind::absent);
  for (const std::string_view key : {"", "a", "j\xFF", "t", "z"}) {
    if (key.empty()) continue;
    expect_wrong(call(OffloadId::get, key));
    expect_wrong(call(OffloadId::put, key, "v"));
    expect_wrong(call(OffloadId::insert, key, "v"));
    expect_wrong(call(OffloadId::update, key, "v"));
    expect_wrong(call(OffloadId::erase, key));
    expect_wrong(call(OffloadId::compare_and_set, key, bytes_of(absent) + "v"));
    expect_wrong(call(OffloadId::add, key, std::string(8, '\1')));
    expect_wrong(call(OffloadId::floor, key));
  }
  for (const std::string_view key : {"k", "m", "s\xFF"}) {
    EXPECT_TRUE(call(OffloadId::put, key, "v").applied());
    EXPECT_TRUE(call(OffloadId::get, key).found());
  }
  EXPECT_EQ(call(OffloadId::count, "k", "t").header.version, 3u);
}

TEST_F(ShardOffloads, KeepToTheirRanges) {
  make();
  ASSERT_TRUE(call(OffloadId::put, "m", "v").applied());
  const std::uint64_t snapshot = call(OffloadId::snapshot_open).header.version;
  for (const OffloadId offload :
       {OffloadId::scan, OffloadId::scan_reverse, OffloadId::scan_floor, OffloadId::count}) {
    SCOPED_TRACE(static_cast<int>(offload));
    expect_wrong(call(offload));
    expect_wrong(call(offload, "k"));
    expect_wrong(call(offload, {}, "t"));
    expect_wrong(call(offload, "a", "t"));
    expect_wrong(call(offload, "k", "ta"));
    EXPECT_EQ(call(offload, "k", "t").header.version, 1u);
    wire::RequestHeader held = request_of(offload, map_, ++tag_);
    held.ring = wire::kAtSnapshot;
    EXPECT_EQ(node_.call(client_, held, "k", bytes_of(snapshot) + "t").header.version, 1u);
    held.tag = ++tag_;
    expect_wrong(node_.call(client_, held, "k", bytes_of(snapshot) + "u"));
    held.tag = ++tag_;
    expect_wrong(node_.call(client_, held, "k", bytes_of(snapshot)));
  }
  expect_wrong(call(OffloadId::count_estimate, "k", "ta"));
  EXPECT_EQ(call(OffloadId::count_estimate, "k", "t").header.code, 0);
}

TEST_F(ShardOffloads, KeepBatchesToTheirKeys) {
  make();
  const auto entry = [](wire::BatchKind kind, std::string_view key) {
    wire::BatchEntry head{};
    head.kind = static_cast<std::uint8_t>(kind);
    if (kind == wire::BatchKind::check) {
      head.condition = static_cast<std::uint8_t>(ConditionKind::absent);
    }
    head.key_bytes = static_cast<std::uint16_t>(key.size());
    return std::string(bytes_of(head)).append(key);
  };
  using enum wire::BatchKind;
  const auto wrong = [&](const Response& response) {
    EXPECT_EQ(response.code(), Code::wrong_shard);
  };
  wrong(call(OffloadId::write_batch, {}, entry(put, "m") + entry(put, "a"), 2));
  wrong(call(OffloadId::write_batch, {}, entry(put, "m") + entry(erase, "t"), 2));
  wrong(call(OffloadId::write_batch, {}, entry(check, "a") + entry(put, "m"), 2));
  std::string many;
  for (int i = 0; i < 200; ++i) many += entry(put, "m" + std::to_string(i));
  wrong(call(OffloadId::write_batch, {}, many + entry(put, "z"), 201));
  EXPECT_EQ(call(OffloadId::count, "k", "t").header.version, 0u);
  EXPECT_TRUE(call(OffloadId::write_batch, {}, many + entry(check, "l"), 201).applied());
  EXPECT_EQ(call(OffloadId::count, "k", "t").header.version, 200u);
}

// --- holds ---------------------------------------------------------------------------------------

TEST_F(ShardOffloads, HoldReleasesUntilTheyAreConfirmed) {
  make();
  SchedulerFixture::Client& writer = node_.connect();
  // Time is not to end it here.
  node_.catalog().open<tree::MapCore>("s").value()->clock.set_time(
      []() noexcept { return std::uint64_t{1}; });
  const Response hold = call(OffloadId::release_hold);
  ASSERT_EQ(hold.header.code, 0);
  ASSERT_NE(hold.header.version, 0u);
  writer->post(message_of(request_of(OffloadId::put, map_, 1), "m", "v"));
  writer->ring();
  node_.turns(500);
  EXPECT_FALSE(writer->receive());
  EXPECT_EQ(call(OffloadId::snapshot_open).header.read_version, hold.header.read_version);
  EXPECT_FALSE(call(OffloadId::get, "m").found());
  const Response confirmed = call(OffloadId::release_confirm, {}, bytes_of(hold.header.version));
  EXPECT_TRUE(confirmed.found());
  EXPECT_EQ(confirmed.header.read_version, hold.header.read_version);
  EXPECT_TRUE(node_.wait(writer).applied());
  // It is over, and so is its number.
  const Response again = call(OffloadId::release_confirm, {}, bytes_of(hold.header.version));
  EXPECT_EQ(again.header.code, 0);
  EXPECT_FALSE(again.found());
  EXPECT_EQ(call(OffloadId::release_hold).code(), Code::busy);
}

// The client is gone: no confirmation arrives, and the writer's request is the last.
TEST_F(ShardOffloads, HoldsEndWithoutTheirClient) {
  make();
  SchedulerFixture::Client& holder = node_.connect();
  const Response hold = node_.call(holder, request_of(OffloadId::release_hold, map_, 1));
  ASSERT_EQ(hold.header.code, 0);
  node_.disconnect(holder);
  EXPECT_TRUE(call(OffloadId::put, "m", "v").applied());
  EXPECT_TRUE(call(OffloadId::get, "m").found());
}

TEST_F(ShardOffloads, HoldsWantVersionsAndAMap) {
  MapOptions options;
  options.versions = false;
  const Response made = create("u", wire::bytes_of(three(1)), options);
  map_ = static_cast<std::uint32_t>(made.header.version);
  EXPECT_EQ(call(OffloadId::release_hold).code(), Code::unsupported);
  EXPECT_FALSE(call(OffloadId::release_confirm, {}, std::string(8, '\1')).found());
}

}  // namespace
}  // namespace espalier::offload
