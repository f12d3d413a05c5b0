// SPDX-License-Identifier: Apache-2.0
// A client and hostile nodes (hostile_node.hpp), over random seeds.
//
// 1000 seeds; ESPALIER_SEEDS sets another number (docs/testing.md).
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/testing/seeds.hpp"
#include "channel/rings/tests/testing/hostile_node_world.hpp"
#include "channel/rings/tests/testing/link_world.hpp"

namespace espalier::client {
namespace {

/// The LinkWay of the rings, and whether the client has a secret, which the node knows.
class HostileNodeSeeds : public ::testing::TestWithParam<std::tuple<wire::LinkWay, bool>> {};

INSTANTIATE_TEST_SUITE_P(Ways, HostileNodeSeeds,
                         ::testing::Combine(::testing::Values(wire::LinkWay::write,
                                                              wire::LinkWay::send),
                                            ::testing::Bool()),
                         [](const auto& way) {
                           const bool writes = std::get<0>(way.param) == wire::LinkWay::write;
                           return std::string(writes ? "Write" : "Send") +
                                  (std::get<1>(way.param) ? "Secret" : "");
                         });

TEST_P(HostileNodeSeeds, EveryRequestEndsOnceAndTheEndIsFound) {
  const std::uint64_t first = base::seed_from_environment(6000);
  const auto [way, has_secret] = GetParam();
  const auto secret = LinkWorld::secret();
  NodeReached reached;
  const auto all_happened = [&] {
    return reached.opened != 0 && reached.refused != 0 && reached.answered != 0 &&
           reached.lost != 0 && reached.resumed != 0;
  };
  for (base::Seeds seeds(1000); seeds.more(all_happened()); seeds.done()) {
    Choices choices(first + seeds.ended());
    HostileNodeWorld world(choices, way, has_secret ? secret : nullptr);
    ASSERT_EQ(world.run(reached), "") << "seed " << first + seeds.ended();
  }
  EXPECT_GT(reached.opened, 0u);
  EXPECT_GT(reached.refused, 0u);
  EXPECT_GT(reached.answered, 0u);
  EXPECT_GT(reached.lost, 0u);
  EXPECT_GT(reached.resumed, 0u);
}

/// The client's result at a node that answers with these bytes.
Result<std::shared_ptr<FabricConnection>> open_at(std::string_view welcome) {
  fabric::sim::World world(1);
  const auto node = world.add_node("n");
  fabric::CompletionQueue completions(*node, 16);
  fabric::QueuePairOptions options;
  options.sends = &completions;
  std::unique_ptr<fabric::QueuePair> pair;
  EXPECT_TRUE(node->listen("n").has_value());
  world.after(50'000, [&] {
    const auto request = node->next_request();
    ASSERT_TRUE(request);
    pair = *node->accept(*request, options, std::as_bytes(std::span(welcome)));
  });
  FabricConnectionOptions client;
  client.response_rings = 1;
  client.now_ns = [&world] { return world.now_ns(); };
  auto opened = FabricConnection::open(fabric::Connecting{world.add_node("c"), "n"}, client);
  // The connection must not outlive the world.
  if (opened) return std::shared_ptr<FabricConnection>();
  return opened;
}

wire::LinkWelcome good_welcome() {
  const FabricConnectionOptions asked;
  wire::LinkWelcome welcome{};
  welcome.magic = wire::kLinkMagic;
  welcome.protocol = wire::kLinkProtocol;
  welcome.way = static_cast<std::uint8_t>(asked.way);
  welcome.request_slots_log2 = wire::slots_log2(asked.request_slots);
  welcome.response_slots_log2 = wire::slots_log2(asked.response_slots);
  welcome.response_rings = 1;
  welcome.token = {1, 2};
  return welcome;
}

TEST(HostileNode, AWelcomeThatMakesNoSenseIsRefused) {
  const wire::LinkWelcome good = good_welcome();
  EXPECT_TRUE(open_at(base::bytes_of(good)));
  EXPECT_TRUE(open_at(std::string(base::bytes_of(good)) + "and more"));
  const auto refusal = [&](auto spoil) {
    wire::LinkWelcome bad = good;
    spoil(bad);
    const auto opened = open_at(base::bytes_of(bad));
    return opened ? Error{} : opened.error();
  };
  const auto corrupt = [](std::uint32_t detail) { return Error{Code::corrupt, 0, detail}; };
  EXPECT_EQ(refusal([](auto& bad) { bad.magic ^= 1; }), corrupt(1));
  EXPECT_EQ(refusal([](auto& bad) { ++bad.protocol; }), (Error{Code::unsupported, 0, 2}));
  EXPECT_EQ(refusal([](auto& bad) { ++bad.way; }), corrupt(2));
  EXPECT_EQ(refusal([](auto& bad) { ++bad.request_slots_log2; }), corrupt(2));
  EXPECT_EQ(refusal([](auto& bad) { bad.response_slots_log2 = 255; }), corrupt(2));
  EXPECT_EQ(refusal([](auto& bad) { bad.response_rings = 0; }), corrupt(2));
  EXPECT_EQ(refusal([](auto& bad) { bad.token = {}; }), corrupt(3));
  EXPECT_EQ(refusal([](auto& bad) { bad.code = 1'000; }), (Error{static_cast<Code>(1'000), 0, 0}));
  EXPECT_EQ(refusal([](auto& bad) { bad.code = 1'000'000; }), corrupt(1));
  EXPECT_EQ(refusal([](auto& bad) { bad.code = 1 << 16; }), corrupt(1))
      << "no error without a code";
  const auto short_one = open_at(base::bytes_of(good).substr(1));
  ASSERT_FALSE(short_one);
  EXPECT_EQ(short_one.error(), corrupt(1));
}

}  // namespace
}  // namespace espalier::client
