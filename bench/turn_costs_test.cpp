// SPDX-License-Identifier: Apache-2.0
#include "bench/turn_costs.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/map_session.hpp"
#include "bench/own_node.hpp"

namespace espalier::bench {
namespace {

TEST(TurnCosts, TheModelsRateIsThatOfTheSideWithTheMostToDo) {
  EXPECT_DOUBLE_EQ(model_ops_per_s(std::vector<Side>{{.cpu_ns_per_op = 200}}), 5e6);
  EXPECT_DOUBLE_EQ(
      model_ops_per_s(std::vector<Side>{{.cpu_ns_per_op = 200}, {.cpu_ns_per_op = 500}}), 2e6);
}

TEST(TurnCosts, CoresOfASideShareItsWork) {
  const std::vector<Side> sides{{.cpu_ns_per_op = 300}, {.cpu_ns_per_op = 800, .cores = 4}};
  EXPECT_DOUBLE_EQ(model_ops_per_s(sides), 1e9 / 300);
}

TEST(TurnCosts, ASlowSideTakesSoManyTimesAsLong) {
  const std::vector<Side> sides{{.cpu_ns_per_op = 300}, {.cpu_ns_per_op = 100, .slowness = 4}};
  EXPECT_DOUBLE_EQ(model_ops_per_s(sides), 2.5e6);
}

TEST(TurnCosts, WithoutACostThereIsNoRate) {
  EXPECT_EQ(model_ops_per_s({}), 0);
  EXPECT_EQ(model_ops_per_s(std::vector<Side>{{}, {}}), 0);
}

class Founds final : public Handler {
 public:
  void done(const Completion& completion) override {
    found_ += completion.ok && completion.found ? 1 : 0;
  }
  [[nodiscard]] std::size_t found() const { return found_; }

 private:
  std::size_t found_ = 0;
};

// Both spin all the time.
TEST(TurnCosts, OfTwoNodesThatSpinTheOneThatIsAskedHasCosts) {
  const auto asked = start_own_node(spinning_node_config());
  const auto idle = start_own_node(spinning_node_config());
  Store store = value_or_throw(Store::connect(local_address(*asked)), "cannot connect");
  Map map = value_or_throw(store.create_map("m"), "no map");
  ASSERT_TRUE(map.put("key", "value"));
  Pipeline pipeline = value_or_throw(Pipeline::open(map, 16), "no pipeline");
  const std::vector<Request> gets(16, {.op = Op::get, .key = "key"});
  const WorkerMeter at_asked(*asked);
  const WorkerMeter at_idle(*idle);
  EXPECT_EQ(at_asked.cpu_ns(), 0);
  ClientTurns turns(false);
  Founds found;
  constexpr std::size_t kBatches = 100;
  for (std::size_t i = 0; i < kBatches; ++i) turns.run(pipeline, gets, found);
  EXPECT_EQ(found.found(), kBatches * gets.size());
  EXPECT_GT(turns.cpu_ns(), 0);
  EXPECT_GT(at_asked.cpu_ns(), 0);
  EXPECT_LT(at_idle.cpu_ns(), at_asked.cpu_ns());
}

// A destroyed meter counts nothing.
TEST(TurnCosts, AMeterCountsWhileItLives) {
  const auto node = start_own_node(spinning_node_config());
  Store store = value_or_throw(Store::connect(local_address(*node)), "cannot connect");
  Map map = value_or_throw(store.create_map("m"), "no map");
  const auto counted = [&] { return node->workers().front()->counts().busy_turns.load(); };
  EXPECT_EQ(counted(), 0u);
  {
    const WorkerMeter meter(*node);
    for (int i = 0; counted() == 0; ++i) ASSERT_TRUE(map.put(std::to_string(i), "value"));
  }
  // A turn that began before may still be counted.
  ASSERT_TRUE(map.put("key", "value"));
  const std::uint64_t before = counted();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(map.put(std::to_string(i), "value"));
  EXPECT_EQ(counted(), before);
}

}  // namespace
}  // namespace espalier::bench
