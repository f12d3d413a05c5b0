// SPDX-License-Identifier: Apache-2.0
#include "tools/record_sink.hpp"

#include <gtest/gtest.h>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

class RecordSinks : public NodeTool {
 protected:
  Map open() {
    store.emplace(*Store::connect(address));
    return *store->open_map("default");
  }
  std::optional<Store> store;
};

TEST_F(RecordSinks, BothTellTheSame) {
  auto embedded = Store::open({.memory_bytes_max = std::uint64_t{64} << 20});
  ASSERT_TRUE(embedded) << message(embedded.error());
  Map here = *embedded->create_map("m");
  Map there = open();
  const auto direct = direct_sink(here);
  const auto pipelined = pipelined_sink(there);
  ASSERT_TRUE(pipelined) << message(pipelined.error());
  for (RecordSink* sink : {direct.get(), pipelined->get()}) {
    for (std::uint64_t line = 1; line <= 5000; ++line) {
      const std::string key = "k" + std::to_string(line * line % 1013);
      const std::string value = std::to_string(line);
      ASSERT_FALSE(sink->put("f", {line, key, value}));
    }
    ASSERT_FALSE(sink->finish());
  }
  EXPECT_EQ(direct->existed(), (*pipelined)->existed());
  EXPECT_EQ(here.stats()->items, there.stats()->items);
  const auto same = here.scan("", "", [&](std::span<const Item> items) {
    for (const Item& item : items) {
      EXPECT_EQ(there.get(item.key)->value().value, item.value) << item.key;
    }
    return true;
  });
  EXPECT_TRUE(same);
}

TEST_F(RecordSinks, ANodeMayTakeFewerAtATime) {
  node.reset();
  config.clients.in_flight_max = 1;
  SetUp();
  Map map = open();
  const auto sink = pipelined_sink(map);
  ASSERT_TRUE(sink) << message(sink.error());
  for (std::uint64_t line = 1; line <= 1000; ++line) {
    const std::string key = std::to_string(line);
    ASSERT_FALSE((*sink)->put("f", {line, key, key}));
  }
  ASSERT_FALSE((*sink)->finish());
  EXPECT_EQ(map.stats()->items, 1000U);
}

TEST_F(RecordSinks, ALostNodeIsTold) {
  Map map = open();
  const auto sink = pipelined_sink(map);
  ASSERT_TRUE(sink) << message(sink.error());
  std::optional<RecordSink::Lost> lost;
  for (std::uint64_t line = 1; line <= 2000 && !lost; ++line) {
    if (line == 1000) node.reset();
    const std::string key = std::to_string(line);
    lost = (*sink)->put("f", {line, key, key});
  }
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->error.code, Code::connection_lost);
  EXPECT_EQ(lost->file, "f");
  EXPECT_LT(lost->line, 2000U);
}

}  // namespace
}  // namespace espalier::tools
