// SPDX-License-Identifier: Apache-2.0
// Offloads on objects of any kind: unique names, lists, drops.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catalog/testing/some_objects.hpp"
#include "engine/payload_reader.hpp"
#include "engine/tests/testing/items.hpp"
#include "engine/tests/testing/scheduler_fixture.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/schema.hpp"
#include "wire/object.hpp"
#include "wire/samples.hpp"

namespace espalier::offload {
namespace {

using wire::OffloadId;

class ObjectOffloads : public testing::Test {
 protected:
  Response call(OffloadId offload, std::string_view key = {}, std::string_view payload = {},
                std::uint32_t argument = 0) {
    return node_.call(client_, request_of(offload, node_.map(), ++tag_, argument), key, payload);
  }
  void expect_error(const Response& response, Code code, std::uint32_t detail) {
    EXPECT_TRUE(response.answers());
    EXPECT_EQ(response.code(), code) << message({response.code(), 0, response.detail()});
    EXPECT_EQ(response.detail(), detail);
  }
  void put(std::string_view key, std::string_view value) {
    ASSERT_TRUE(call(OffloadId::put, key, value).applied());
  }

  SchedulerFixture node_;
  SchedulerFixture::Client& client_ = node_.connect();
  std::uint32_t tag_ = 0;
};

constexpr auto kMapKind = static_cast<std::uint32_t>(ObjectKind::map);
constexpr auto kTableKind = static_cast<std::uint32_t>(ObjectKind::table);

std::string shape_bytes() {
  wire::MapShape shape{};
  shape.node_bytes = 1024;
  shape.log_bytes = 256;
  shape.versions = 1;
  shape.snapshot_bytes_max = 1 << 20;
  return std::string(bytes_of(shape));
}

std::string schema_bytes() {
  const auto schema = table::Schema::parse("id i64").value();
  std::string bytes(schema.encoded_bytes(), '\0');
  schema.encode(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

TEST_F(ObjectOffloads, MakesOpensListsAndDropsMaps) {
  const std::string shape = shape_bytes();
  const Response made = call(OffloadId::map_create, "two", shape);
  ASSERT_EQ(made.header.code, 0);
  expect_error(call(OffloadId::map_create, "two", shape), Code::already_exists, kMapKind);
  EXPECT_EQ(call(OffloadId::map_open, "two").header.version, made.header.version);
  expect_error(call(OffloadId::map_open, "three"), Code::not_found, 0);
  EXPECT_EQ(items_of(call(OffloadId::object_list).payload).size(), 2u);
  const auto id = static_cast<std::uint32_t>(made.header.version);
  EXPECT_TRUE(node_.call(client_, request_of(OffloadId::put, id), "a", "1").applied());
  EXPECT_EQ(call(OffloadId::object_drop, "two", {}, kMapKind).header.code, 0);
  expect_error(call(OffloadId::object_drop, "two", {}, kMapKind), Code::not_found, 0);
  expect_error(node_.call(client_, request_of(OffloadId::get, id), "a"), Code::not_found, id);
  EXPECT_EQ(items_of(call(OffloadId::object_list).payload).size(), 1u);
}

TEST_F(ObjectOffloads, ANameIsOneObjectsWhateverItsKind) {
  const Response table = call(OffloadId::table_create, "t", schema_bytes());
  ASSERT_EQ(table.header.code, 0);
  const auto id = static_cast<std::uint32_t>(table.header.version);
  EXPECT_NE(id, node_.map());
  expect_error(call(OffloadId::map_create, "t", shape_bytes()), Code::already_exists, kTableKind);
  expect_error(call(OffloadId::table_create, "m", schema_bytes()), Code::already_exists, kMapKind);
  expect_error(call(OffloadId::table_create, "t", schema_bytes()), Code::already_exists,
               kTableKind);
  expect_error(call(OffloadId::map_open, "t"), Code::wrong_kind, kTableKind);
  expect_error(call(OffloadId::table_open, "m"), Code::wrong_kind, kMapKind);
  expect_error(call(OffloadId::object_drop, "t", {}, kMapKind), Code::wrong_kind, kTableKind);
  expect_error(call(OffloadId::object_drop, "m", {}, kTableKind), Code::wrong_kind, kMapKind);
  // An id implies the kind.
  expect_error(node_.call(client_, request_of(OffloadId::get, id), "a"), Code::not_found, id);
  expect_error(node_.call(client_, request_of(OffloadId::table_append, node_.map()), {}, {}),
               Code::not_found, node_.map());
  put("a", "1");
  EXPECT_EQ(call(OffloadId::object_drop, "t").header.code, 0) << "of any kind";
  EXPECT_EQ(call(OffloadId::map_create, "t", shape_bytes()).header.code, 0);
}

TEST_F(ObjectOffloads, ListsObjectsOfEachKind) {
  ASSERT_EQ(call(OffloadId::table_create, "t", schema_bytes()).header.code, 0);
  put("a", "1");
  const auto list = [this](std::uint32_t kind) {
    const Response answer = call(OffloadId::object_list, {}, {}, kind);
    EXPECT_EQ(answer.header.code, 0);
    const auto items = items_of(answer.payload);
    EXPECT_EQ(answer.header.version, items.size());
    return items;
  };
  const auto entry_of = [](std::string_view value) {
    wire::ObjectEntry entry{};
    EXPECT_GE(value.size(), sizeof entry);
    std::memcpy(&entry, value.data(), sizeof entry);
    return entry;
  };
  const auto all = list(0);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, "m");
  const wire::ObjectEntry map = entry_of(all[0].second);
  EXPECT_EQ(map.kind, kMapKind);
  EXPECT_EQ(map.entries, 1u);
  EXPECT_EQ(map.memory_bytes, node_.core().memory_bytes());
  EXPECT_EQ(all[0].second.size(), sizeof map + sizeof(wire::MapShape));
  EXPECT_EQ(all[1].first, "t");
  const wire::ObjectEntry table = entry_of(all[1].second);
  EXPECT_EQ(table.kind, kTableKind);
  EXPECT_EQ(table.entries, 0u);
  EXPECT_EQ(table.memory_bytes, wire::kTableHeaderBytes);
  EXPECT_EQ(all[1].second.size(), sizeof table + sizeof(wire::TableFacts) + schema_bytes().size());
  ASSERT_EQ(list(kMapKind).size(), 1u);
  EXPECT_EQ(list(kMapKind)[0].first, "m");
  ASSERT_EQ(list(kTableKind).size(), 1u);
  EXPECT_EQ(list(kTableKind)[0].first, "t");
  EXPECT_TRUE(list(77).empty()) << "a kind of a later version";
  expect_error(call(OffloadId::object_list, {}, {}, 256), Code::invalid_argument, 256);
  expect_error(call(OffloadId::object_drop, "m", {}, 1u << 31), Code::invalid_argument, 1u << 31);
}

std::string samples_wanted(std::uint32_t objects_max, ObjectKind kind = ObjectKind::any,
                           std::uint8_t flags = 0, std::uint16_t reserved = 0) {
  return std::string(
      bytes_of(wire::SamplesWanted{objects_max, static_cast<std::uint8_t>(kind), flags, reserved}));
}

constexpr auto kLater = static_cast<ObjectKind>(200);

class SampledOffloads : public ObjectOffloads {
 protected:
  /// The names of the reported objects.
  std::vector<std::string> names(std::string_view name, const std::string& wanted) {
    const Response answer = call(OffloadId::object_samples, name, wanted);
    EXPECT_EQ(answer.code(), Code::invalid);
    count_ = answer.header.version;
    const auto objects = wire::read_sampled_objects(answer.payload);
    if (!objects) return {"not to be read"};
    std::vector<std::string> names;
    for (const wire::SampledObject& object : *objects) names.push_back(object.name);
    return names;
  }
  void make_later(std::string_view name) {
    static std::atomic<int> living{0};  // outlives the node
    ASSERT_TRUE(catalog::create_some<catalog::SomeLater>(node_.services().catalog(), name, living));
  }

  std::uint64_t count_ = 0;
};
using SampledNames = std::vector<std::string>;

TEST_F(SampledOffloads, TellNumbersOfEveryKind) {
  ASSERT_EQ(call(OffloadId::table_create, "t", schema_bytes()).header.code, 0);
  const std::uint64_t first = 7;
  ASSERT_EQ(call(OffloadId::sequencer_create, "s", std::string(bytes_of(first))).header.code, 0);
  make_later("l");
  put("a", "1");
  const Response answer = call(OffloadId::object_samples, {}, samples_wanted(256));
  ASSERT_EQ(answer.code(), Code::invalid);
  EXPECT_EQ(answer.header.version, 4u);
  const auto objects = wire::read_sampled_objects(answer.payload);
  ASSERT_TRUE(objects && objects->size() == 4);
  const auto value_of = [&](std::string_view object, std::string_view sample) {
    const auto found = std::ranges::find(*objects, object, &wire::SampledObject::name);
    const auto at = std::ranges::find(found->samples, sample, &wire::Sample::name);
    EXPECT_NE(at, found->samples.end()) << object << ' ' << sample;
    return at == found->samples.end() ? 0 : at->value;
  };
  EXPECT_EQ(value_of("m", "items"), 1u);
  EXPECT_EQ(value_of("m", "height"), 1u);
  EXPECT_GT(value_of("m", "node_bytes"), 0u);
  EXPECT_EQ(value_of("t", "rows"), 0u);
  EXPECT_EQ(value_of("t", "memory_bytes"), wire::kTableHeaderBytes);
  EXPECT_EQ(value_of("s", "next"), 7u);
  EXPECT_EQ(value_of("s", "epoch"), 1u);
  EXPECT_EQ(value_of("l", "items"), 3u);
  const auto later = std::ranges::find(*objects, "l", &wire::SampledObject::name);
  EXPECT_EQ(later->kind, kLater);
  EXPECT_EQ(later->kind_name, "");
  const auto map = std::ranges::find(*objects, "m", &wire::SampledObject::name);
  EXPECT_EQ(map->kind_name, "map");
  EXPECT_EQ(map->id, node_.map());
}

TEST_F(SampledOffloads, TellOfThoseThatTakeMostMemory) {
  for (const std::string name : {"a", "ccc", "bb", "dd"}) make_later(name);
  EXPECT_EQ(names("", samples_wanted(256, kLater)), (SampledNames{"ccc", "bb", "dd", "a"}));
  EXPECT_EQ(count_, 4u);
  EXPECT_EQ(names("", samples_wanted(2, kLater)), (SampledNames{"ccc", "bb"}));
  EXPECT_EQ(count_, 4u) << "that there are more is told";
  EXPECT_EQ(names("", samples_wanted(256, ObjectKind::map)), SampledNames{"m"});
  EXPECT_EQ(names("dd", samples_wanted(1)), SampledNames{"dd"});
  EXPECT_EQ(count_, 1u);
  EXPECT_EQ(names("dd", samples_wanted(1, ObjectKind::map)), SampledNames{})
      << "it is of another kind";
  EXPECT_EQ(names("d", samples_wanted(1)), SampledNames{});
  EXPECT_EQ(count_, 0u);
}

TEST_F(SampledOffloads, RefuseWhatNoClientAsksFor) {
  const auto refused = [this](std::string_view payload, std::uint32_t detail) {
    expect_error(call(OffloadId::object_samples, {}, payload), Code::invalid_argument, detail);
  };
  refused(samples_wanted(0), 0);
  refused(samples_wanted(257), 257);
  refused(samples_wanted(1, ObjectKind::any, 2), 2);
  refused(samples_wanted(1, ObjectKind::any, 0, 9), 9);
  refused("1234567", 7);
  refused("123456789", 9);
  const std::string too_long(256, 'n');
  EXPECT_NE(call(OffloadId::object_samples, too_long, samples_wanted(1)).code(), Code::invalid);
}

}  // namespace
}  // namespace espalier::offload
