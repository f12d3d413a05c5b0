// SPDX-License-Identifier: Apache-2.0
// A node is killed while it works, and another one starts at its address: each request in flight
// completes once with an error, and later ones are served by the new node. Over each kind of
// fabric; node and client are processes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/forked_node.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

const std::string kAtWork = "at work";
const std::string kDone = "done";

/// Counts how requests end.
struct Ends : Handler {
  void done(const Completion& completion) override {
    ++ended;
    if (completion.ok) return;
    if (!failed) first = completion.error;
    failed = true;
    if (completion.error.code != first.code) mixed = true;
  }
  std::size_t ended = 0;
  bool failed = false;
  bool mixed = false;  // reasons
  Error first{};
};

/// Puts until the node is gone. Returns what was wrong with the reported errors.
std::string work_until_lost(const Map& map, Line& line) {
  auto pipeline = Pipeline::open(map, 64);
  if (!pipeline) return "open a pipeline: " + message(pipeline.error());
  Ends ends;
  std::vector<Request> puts(16);
  std::vector<std::string> keys(puts.size());
  std::size_t submitted = 0;
  while (!ends.failed) {
    for (std::size_t i = 0; i < puts.size(); ++i) {
      keys[i] = "key" + std::to_string(submitted + i);
      puts[i].op = Op::put;
      puts[i].key = keys[i];
      puts[i].value = "value";
    }
    pipeline->submit(puts, ends);
    submitted += puts.size();
    if (submitted == 64 * puts.size()) line.send(kAtWork);
    while (pipeline->poll() > 32 && !ends.failed) {
    }
  }
  while (pipeline->poll() != 0) {
  }
  if (ends.ended != submitted) return "not all have ended, or some twice";
  if (ends.mixed || ends.first.code != Code::connection_lost) {
    return "not told as lost, but: " + message(ends.first);
  }
  return {};
}

/// Asks until a node answers, which must be another one, without this key.
std::string go_on_with_the_next(Map& map) {
  for (;;) {
    const auto got = map.get("before");
    if (got && *got) return "the new node knows what the old one knew";
    if (got) break;
    const Code code = got.error().code;
    if (code != Code::connection_lost && code != Code::system) return message(got.error());
  }
  if (const auto put = map.put("after", "2"); !put) return message(put.error());
  const auto got = map.get("after");
  return got && *got && (*got)->value == "2" ? "" : "the new node does not work";
}

std::string live_through_it(const std::string& address, Line& line) {
  auto store = Store::connect(address);
  if (!store) return "connect: " + message(store.error());
  auto map = store->open_map("default");
  if (!map) return "open the map: " + message(map.error());
  if (const auto put = map->put("before", "1"); !put) return "put: " + message(put.error());
  auto snapshot = map->snapshot();
  if (!snapshot) return "snapshot: " + message(snapshot.error());
  if (std::string wrong = work_until_lost(*map, line); !wrong.empty()) return wrong;
  if (std::string wrong = go_on_with_the_next(*map); !wrong.empty()) return wrong;
  const auto held = snapshot->get("before");
  return held ? "a snapshot of the old node is answered by the new one" : "";
}

class KilledNodeConcurrencySlow : public NodeOverEachWay {};

TEST_P(KilledNodeConcurrencySlow, WhatWasInFlightEndsOnceAndTheNextNodeServes) {
  config_.node.sweep_asleep_ms = 10;
  auto node = std::make_unique<ForkedNode>(config_);
  if (!node->fabric_addresses().empty()) config_.node.fabric = node->fabric_addresses().front();
  Child client([this](Line& line) {
    const std::string wrong = live_through_it(address(), line);
    line.send(wrong.empty() ? kDone : wrong);
    return wrong.empty() ? 0 : 1;
  });
  std::string said;
  ASSERT_TRUE(client.line().receive(said));
  ASSERT_EQ(said, kAtWork);
  node.reset();  // kills it
  node = std::make_unique<ForkedNode>(config_);
  ASSERT_TRUE(client.line().receive(said));
  EXPECT_EQ(said, kDone);
  EXPECT_EQ(client.wait(), 0);
  EXPECT_EQ(node->stop(), "");
}

INSTANTIATE_TEST_SUITE_P(By, KilledNodeConcurrencySlow, ::testing::ValuesIn(kWays), way_name);

}  // namespace
}  // namespace espalier::test
