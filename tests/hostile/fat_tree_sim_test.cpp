// SPDX-License-Identifier: Apache-2.0
// A map over four nodes behind the 13 switches of a FatTree: a get takes one round trip from any
// client, and answers are right whatever happens to packets, links, switches and tables.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/testing/seeds.hpp"
#include "tests/support/fat_tree_world.hpp"
#include "tests/support/shim_tampering.hpp"

namespace espalier::test {
namespace {

using dataplane::FatTree;

const MapOptions kSmallNodes{.node_bytes = 1024, .log_bytes = 128};

// Both clients use all nodes, those of their own pod too.
void expect_one_trip_each(FatTreeWorld& world, std::uint32_t keys) {
  for (std::uint32_t i = 0; i < 24; ++i) {
    EXPECT_EQ(world.trips_of(i % 2, FatTreeWorld::key(keys / 24 * i)), 1u) << i;
  }
}

TEST(FatTreeSim, AGetTakesOneTripToWhicheverNodeHasItsKey) {
  constexpr std::uint32_t kKeys = 12'000;
  FatTreeWorld world(base::seed_from_environment(41), kSmallNodes, kKeys);
  const fabric::RegionKey agreed = world.keys[0].keyed;
  for (const auto& keys : world.keys) EXPECT_EQ(keys.keyed, agreed) << "the nodes disagree";
  // A range for each node: its root lies in the aggregation switch, what is below it in the edge.
  world.compile({.ranges = 4, .nodes = 4000});
  world.install_all();
  const auto& counters = world.tree.through.counters();
  expect_one_trip_each(world, kKeys);
  EXPECT_EQ(counters.redirected, 24u);
  EXPECT_EQ(counters.carried, 48u) << "the core and an aggregation switch, each";
  EXPECT_EQ(world.resolved(), 0u) << "tables knew all leaves";
  EXPECT_EQ(world.restarts(), 0u);
  std::uint64_t at_leaves = 0;
  for (const auto& node : world.nodes) {
    EXPECT_GE(node->met.leaves.load(), 6u) << "each has a quarter of the keys";
    at_leaves += node->met.leaves;
  }
  EXPECT_EQ(at_leaves, 24u);
}

// Each of them in its turn; what the others hold of that generation is as good as before.
TEST(FatTreeSim, SwitchesRestartOneByOneAndAreFilledAgain) {
  constexpr std::uint32_t kKeys = 4'000;
  FatTreeWorld world(base::seed_from_environment(42), kSmallNodes, kKeys);
  world.compile({.ranges = 4, .nodes = 4000});
  world.install_all();
  const auto& counters = world.tree.through.counters();
  for (std::size_t number = 0; number < FatTree::kSwitches; ++number) {
    SCOPED_TRACE(number);
    world.tree.set_switch(number, false);
    world.tree.set_switch(number, true);
    expect_one_trip_each(world, kKeys);  // nodes answer where it had the tables
    const std::uint64_t resolved = world.resolved();
    const bool had_tables = !world.programs[number].maps().empty();
    EXPECT_EQ(resolved != 0, had_tables);
    world.install(number);
    const std::uint64_t redirected = counters.redirected;
    expect_one_trip_each(world, kKeys);
    EXPECT_EQ(counters.redirected, redirected + 24);
    EXPECT_EQ(world.resolved(), resolved);
    for (const auto& node : world.nodes) node->met.resolved = 0;
  }
  EXPECT_TRUE(world.all_connected());
}

/// How often the rare was reached.
struct StormCounts {
  std::uint64_t redirected = 0;
  std::uint64_t carried = 0;
  std::uint64_t shims_removed = 0;
  std::uint64_t tampered = 0;
  std::uint64_t other_servers = 0;
  std::uint64_t outages = 0;
  std::uint64_t lost = 0;
  std::uint64_t overtaken = 0;
};

/// Outages of links and switches, one at a time.
class Outages {
 public:
  Outages(FatTreeWorld& world, base::Random& random) : world_(world), random_(random) {}

  void turn() {
    if (left_ != 0) {
      if (--left_ == 0) end_();
      return;
    }
    if (!random_.chance(0.01)) return;
    ++count;
    left_ = 1 + random_.below(40);
    const std::size_t number = random_.below(FatTree::kSwitches);
    if (random_.chance(0.3)) {
      const auto host = FatTreeWorld::kHosts[random_.below(FatTreeWorld::kNodes)];
      return hold([this, host](bool up) { world_.tree.set_host_link(host, up); });
    }
    if (number != FatTree::kCore && random_.chance(0.5)) {
      return hold([this, number](bool up) { world_.tree.set_uplink(number, up); });
    }
    hold([this, number](bool up) { world_.tree.set_switch(number, up); });
  }
  void end() {
    if (left_ != 0) end_();
    left_ = 0;
  }
  std::uint64_t count = 0;

 private:
  void hold(const std::function<void(bool up)>& set) {
    set(false);
    end_ = [set] { set(true); };
  }

  FatTreeWorld& world_;
  base::Random& random_;
  std::uint64_t left_ = 0;
  std::function<void()> end_;
};

// The controller updates switches one by one, each of them sometimes late; one may get wrong
// tables.
void tell_some(FatTreeWorld& world, base::Random& random) {
  if (random.chance(0.15)) world.compile({.ranges = 4 + random.below(8), .nodes = 60});
  const std::size_t number = random.below(FatTree::kSwitches);
  switch (random.below(6)) {
    case 0: world.tree.function(number).install({}); break;
    case 1: world.install_lies(number, random); break;
    case 2:
    case 3: world.install_all(); break;
    default: world.install(number); break;
  }
}

std::string run_storm(std::uint64_t seed, StormCounts& counts) {
  constexpr std::uint32_t kKeys = 1200;
  FatTreeWorld world(seed, {.node_bytes = 512, .log_bytes = 64}, kKeys, 20'000);
  base::Random random(seed + 100);
  ShimTampering::Redirects redirects;
  for (std::size_t node = 0; node < FatTreeWorld::kNodes; ++node) {
    const auto address = FatTreeWorld::kHosts[node].service().bytes;
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < 4; ++i) number = number << 8 | address[i];
    redirects[number] = world.keys[node].redirect;
  }
  ShimTampering tampering(seed + 200, redirects, 0.1);
  Outages outages(world, random);
  world.compile({.ranges = 8, .nodes = 60});
  world.install_all();
  world.tree.through.between = std::ref(tampering);
  world.network.faults.loss = 0.05;
  world.network.faults.duplicate = 0.1;
  world.network.faults.damage = 0.02;
  std::string wrong;
  std::uint32_t asked = 0;
  for (int i = 0; i < 200'000 && wrong.empty() && world.answers < 300; ++i) {
    if (asked < 300 && world.gets.size() < 6) {
      world.ask(asked % FatTreeWorld::kClients,
                FatTreeWorld::key(static_cast<std::uint32_t>(random.below(kKeys + 20))));
      ++asked;
    }
    if (random.chance(0.25)) {
      world.put(FatTreeWorld::key(static_cast<std::uint32_t>(random.below(kKeys))),
                "new " + std::to_string(i) + std::string(random.below(16), 'x'));
    }
    if (random.chance(0.05)) tell_some(world, random);
    outages.turn();
    world.turn();
    wrong = world.validate();
    if (!world.all_connected()) wrong = "a pair ended";
  }
  outages.end();
  world.tree.through.between = nullptr;
  if (wrong.empty() && world.answers < 300) wrong = "gets were not answered";
  if (wrong.empty() && world.errors > 10) wrong = std::to_string(world.errors) + " were refused";
  const auto& seen = world.tree.through.counters();
  counts.redirected += seen.redirected;
  counts.carried += seen.carried;
  counts.shims_removed += seen.shims_removed;
  counts.lost += seen.lost;
  counts.tampered += tampering.count;
  counts.other_servers += tampering.other_servers;
  counts.outages += outages.count;
  counts.overtaken += world.network.counters().overtaken;
  return wrong;
}

TEST(FatTreeSim, AnswersAreRightWhileLinksAndSwitchesFailAndTablesLie) {
  const std::uint64_t first = base::seed_from_environment(51);
  base::Seeds seeds(4);
  StormCounts counts;
  for (std::uint64_t i = 0; i < seeds.count(); ++i) {
    SCOPED_TRACE(first + i);
    ASSERT_EQ(run_storm(first + i, counts), "");
    seeds.done();
  }
  const std::uint64_t done = seeds.count();  // half of what each has, about
  EXPECT_GT(counts.redirected, 200u * done);
  EXPECT_GT(counts.carried, 400u * done);
  EXPECT_GT(counts.shims_removed, 50u * done);
  EXPECT_GT(counts.tampered, 45u * done);
  EXPECT_GT(counts.other_servers, 5u * done);
  EXPECT_GT(counts.outages, 14u * done);
  EXPECT_GT(counts.lost, 60u * done);
  EXPECT_GT(counts.overtaken, 800u * done);
  seeds.report("READs redirected", counts.redirected);
  seeds.report("READs tampered with", counts.tampered);
  seeds.report("outages", counts.outages);
}

}  // namespace
}  // namespace espalier::test
