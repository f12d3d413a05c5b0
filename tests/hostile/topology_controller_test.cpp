// SPDX-License-Identifier: Apache-2.0
// One controller for the 13 switches of a FatTree and the four nodes behind them: tables follow the
// map, switches restart one by one under load, and failures are repaired.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/testing/seeds.hpp"
#include "tests/support/fat_tree_controller.hpp"

namespace espalier::test {
namespace {

using dataplane::FatTree;

constexpr std::uint32_t kKeys = 2'000;
const MapOptions kControlledNodes{.node_bytes = 1024, .log_bytes = 128};
const FatTreeWorld::Room kRoom{.ranges = 8, .nodes = 4000};

/// A world with a controller, and clients that send requests all the time.
class ControlledWorld {
 public:
  explicit ControlledWorld(std::uint64_t seed)
      : random(seed + 1), world(seed, kControlledNodes, kKeys), control(world, kRoom) {}

  /// Sends gets, writes items, and checks answers. Returns what is wrong.
  std::string turn() {
    while (world.gets.size() < 4) {
      world.ask(random.below(FatTreeWorld::kClients), any_key());
      ++asked;
    }
    if (random.chance(0.1)) world.put(any_key(), "new " + std::to_string(++written));
    world.turn();
    if (!world.all_connected()) return "a pair ended";
    return world.validate();
  }
  std::string any_key() {
    return FatTreeWorld::key(static_cast<std::uint32_t>(random.below(kKeys)));
  }
  void finish_gets() {
    for (int i = 0; i < 100'000 && !world.gets.empty(); ++i) {
      world.turn();
      ASSERT_EQ(world.validate(), "");
    }
    ASSERT_TRUE(world.gets.empty());
  }
  /// By the switches: a READ that no table has met takes one trip, too.
  void expect_one_trip_each() {
    const std::uint64_t resolved = world.resolved();
    const std::uint64_t redirected = world.tree.through.counters().redirected;
    for (std::uint32_t i = 0; i < 24; ++i) {
      EXPECT_EQ(world.trips_of(i % 2, FatTreeWorld::key(kKeys / 24 * i)), 1u) << i;
    }
    EXPECT_EQ(world.resolved(), resolved);
    EXPECT_GE(world.tree.through.counters().redirected, redirected + 24);
  }

  base::Random random;
  FatTreeWorld world;
  FatTreeController control;
  std::uint64_t asked = 0;
  std::uint64_t written = 0;
};

TEST(TopologyController, HasTheTablesOfAllSwitchesFollowTheMap) {
  ControlledWorld its(base::seed_from_environment(61));
  const auto first = its.control.round();
  EXPECT_TRUE(first.compiled);
  EXPECT_EQ(first.installed, FatTree::kSwitches);
  EXPECT_EQ(first.out_of_reach, 0u);
  its.expect_one_trip_each();
  const auto nothing = its.control.round();
  EXPECT_FALSE(nothing.compiled || nothing.changes != 0 || nothing.installed != 0);
  // Leaves that move change their entries, in the switches that have them, and nothing else.
  std::size_t changes = 0;
  for (int i = 0; i < 200; ++i) {
    for (int k = 0; k < 40; ++k) its.world.put(its.any_key(), "new " + std::to_string(i));
    const auto done = its.control.round();
    changes += done.changes;
    EXPECT_EQ(done.out_of_reach, 0u);
    if (!done.compiled) {
      EXPECT_EQ(done.installed, 0u);
    }
    its.world.network.advance(20'000'000);
  }
  EXPECT_GT(changes, 100u);
  its.expect_one_trip_each();
  // Tables of another shape have other keys, and those before end when no switch has them.
  for (std::uint16_t node = 0; node < FatTreeWorld::kNodes; ++node) {
    EXPECT_EQ(its.control.keys_of(node), 1u);
  }
}

TEST(TopologyController, RestartsSwitchesOneByOneUnderLoad) {
  ControlledWorld its(base::seed_from_environment(62));
  its.control.round();
  std::vector<std::size_t> order;
  std::size_t down = FatTree::kSwitches;  // none
  its.control.controller().restart_all([&](std::size_t number) {
    EXPECT_EQ(down, FatTree::kSwitches) << "one is down already";
    EXPECT_TRUE(its.control.controller().all_current());
    its.control.take_down(number);
    down = number;
    order.push_back(number);
  });
  for (int i = 0; its.control.controller().is_restarting(); ++i) {
    ASSERT_LT(i, 40'000);
    ASSERT_EQ(its.turn(), "");
    if (i % 10 != 0) continue;
    const auto done = its.control.round();
    EXPECT_LE(done.out_of_reach, 1u);
    if (down != FatTree::kSwitches && i % 600 == 0) {
      its.control.bring_up(down);
      down = FatTree::kSwitches;
    }
  }
  std::vector<std::size_t> all(FatTree::kSwitches);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(order, all);
  its.finish_gets();
  EXPECT_GT(its.world.answers, 100u);
  its.control.round();
  its.expect_one_trip_each();
}

// What restarts a switch may take its time: until the switch has been gone no other is restarted.
TEST(TopologyController, ARestartIsOverWhenTheSwitchHasBeenGone) {
  ControlledWorld its(base::seed_from_environment(64));
  its.control.round();
  std::vector<std::size_t> order;
  its.control.controller().restart_all([&](std::size_t number) { order.push_back(number); });
  for (int i = 0; i < 5; ++i) its.control.round();
  EXPECT_EQ(order, (std::vector<std::size_t>{0}));
  EXPECT_FALSE(its.control.controller().all_current());
  its.control.take_down(0);
  EXPECT_EQ(its.control.round().out_of_reach, 1u);
  its.control.bring_up(0);
  EXPECT_EQ(its.control.round().installed, 1u);
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(its.control.controller().next_restart(), 2u);
}

/// Links and switches that fail for a while, some at a time.
class Failures {
 public:
  explicit Failures(ControlledWorld& of) : of_(of) {}
  void turn() {
    if (of_.random.chance(0.01) && ends_.size() < 3) begin();
    if (!ends_.empty() && of_.random.chance(0.03)) end_one();
  }
  void end_all() {
    while (!ends_.empty()) end_one();
  }
  std::uint64_t switches = 0;
  std::uint64_t links = 0;

 private:
  void begin() {
    const std::size_t number = of_.random.below(FatTree::kSwitches);
    if (!of_.world.tree.is_up(number)) return;
    if (of_.random.chance(0.5)) {
      ++switches;
      of_.control.take_down(number);
      ends_.emplace_back([this, number] { of_.control.bring_up(number); });
    } else if (number != FatTree::kCore) {
      ++links;
      of_.world.tree.set_uplink(number, false);
      ends_.emplace_back([this, number] { of_.world.tree.set_uplink(number, true); });
    }
  }
  void end_one() {
    const auto end = ends_.begin() + static_cast<std::ptrdiff_t>(of_.random.below(ends_.size()));
    (*end)();
    ends_.erase(end);
  }

  ControlledWorld& of_;
  std::vector<std::function<void()>> ends_;
};

TEST(TopologyController, MakesGoodWhatFails) {
  const std::uint64_t base = base::seed_from_environment(63);
  base::Seeds seeds(3);
  std::uint64_t out_of_reach = 0;
  std::uint64_t installed = 0;
  std::uint64_t failed = 0;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(base + i);
    ControlledWorld its(base + i);
    Failures failures(its);
    its.control.round();
    its.world.network.faults.loss = 0.02;
    for (int k = 0; k < 1500; ++k) {
      ASSERT_EQ(its.turn(), "");
      failures.turn();
      if (k % 5 != 0) continue;
      const auto done = its.control.round();
      out_of_reach += done.out_of_reach;
      installed += done.installed;
    }
    failures.end_all();
    its.world.network.faults.loss = 0;
    its.finish_gets();
    its.control.round();
    EXPECT_TRUE(its.control.controller().all_current());
    its.expect_one_trip_each();
    failed += failures.switches + failures.links;
    seeds.done();
  }
  EXPECT_GT(out_of_reach, 10 * seeds.count());
  EXPECT_GT(installed, 2 * seeds.count());
  EXPECT_GT(failed, 4 * seeds.count());
  seeds.report("switches and links failed", failed);
}

}  // namespace
}  // namespace espalier::test
