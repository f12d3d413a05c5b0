// SPDX-License-Identifier: Apache-2.0
// Clients of a real node whose READs carry keys, through a switch whose tables a controller fills:
// answers are right whatever happens to the map, and a get takes one round trip if the tables know
// its leaf.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "dataplane/switch_program.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/write/map_core.hpp"
#include "shards/sharding.hpp"
#include "tests/support/in_network_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

TEST_F(InNetwork, AGetTakesOneTrip) {
  start();
  fill(8'000);
  open_switch();
  open_reader();
  trips_of(key_of(5));  // opens the map
  const std::uint64_t before = switch_->redirected();
  expect_trips(1, key_of(17));  // the node finds the leaf where no table does
  EXPECT_EQ(switch_->redirected(), before);
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  for (std::uint64_t i = 0; i < 8'000; i += 171) expect_trips(1, key_of(i), &controller);
  expect_trips(1, "user9", &controller);  // it is not there
  EXPECT_GE(switch_->redirected(), before + 8'000 / 171);
  const offload::IndexReadCounts& met = node_->services().part<offload::MapServices>().index_reads;
  EXPECT_GE(met.resolved.load(), 1u) << "before there were tables";
  EXPECT_GE(met.leaves.load(), 8'000u / 171);
  EXPECT_TRUE(did(controller) == Did::nothing || lost_);
}

// Each node has a controller, and both go by one keyed key.
TEST_F(InNetwork, AMapOverTwoNodesIsReadThroughOneSwitch) {
  start();
  start_others();
  open_switch();
  const std::string first = "roce+memif:" + path("clients");
  const auto made =
      client::create_shards("m", kOptions, {{"", first}, {key_of(3'000), first + "1"}});
  ASSERT_TRUE(made) << message(made.error().error) << made.error().words;
  writer_.emplace(*Store::connect(first));
  written_.emplace(*writer_->open_map("m"));
  for (std::uint64_t i = 0; i < 6'000; ++i) put(key_of(i), "value " + std::to_string(i));
  open_reader();
  trips_of(key_of(5));
  trips_of(key_of(5'005));
  expect_trips(1, key_of(2'999));  // nodes find leaves where no table does
  expect_trips(1, key_of(3'000));
  std::deque<IndexController> controllers;  // which stay where they are
  for (std::uint16_t number = 0; number < 2; ++number) {
    const std::string node = number == 0 ? config_.node.fabric : fabric_of_other(number);
    controllers.emplace_back(
        IndexController::Options{.node = *client::parse_node_address(node),
                                 .map = "m",
                                 .controls = {control()},
                                 .limits = {.ranges = 4000},
                                 .number = number,
                                 .count_every_ns = 0});
    ASSERT_EQ(did(controllers.back()), Did::installed);
  }
  const auto program = dataplane::SwitchProgram::parse(
      *dataplane::ControlClient::connect(control())->ask("program"));
  ASSERT_TRUE(program);
  ASSERT_EQ(program->maps().size(), 2u);
  EXPECT_EQ(program->maps()[0].keys.keyed, program->maps()[1].keys.keyed);
  EXPECT_NE(program->maps()[0].keys.redirect, program->maps()[1].keys.redirect);
  const std::uint64_t before = switch_->redirected();
  for (std::uint64_t i = 0; i < 6'000; i += 171) {
    expect_trips(1, key_of(i), &controllers[i < 3'000 ? 0 : 1]);
  }
  EXPECT_GE(switch_->redirected(), before + 6'000 / 171);
  for (const auto* const node : {node_.get(), others_[0].get()}) {
    EXPECT_GE(node->services().part<offload::MapServices>().index_reads.leaves.load(), 17u);
  }
  // Leaves of the second node move.
  for (int i = 0; i < 300; ++i) put(key_of(4'077), "new " + std::to_string(i));
  EXPECT_NE(did(controllers[1]), Did::nothing);
  expect_trips(1, key_of(4'077), &controllers[1]);
}

// The fat root in the first of two switches, all layers of nodes in the second.
TEST_F(InNetwork, AGetTakesOneTripThroughTwoSwitchesInARow) {
  start();
  fill(8'000);
  open_switches();
  open_reader();
  trips_of(key_of(5));
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {control(), control_behind()},
                              .limits = {.ranges = 4, .sets = 3},
                              .hops = {{.sets = 0}, {.sets = 3}},
                              .count_every_ns = 0});
  ASSERT_EQ(did(controller), Did::installed);
  const std::uint64_t before = behind_->redirected();
  for (std::uint64_t i = 0; i < 8'000; i += 171) expect_trips(1, key_of(i), &controller);
  expect_trips(1, "user9", &controller);
  EXPECT_GE(behind_->redirected(), before + 8'000 / 171) << "the second knew the leaves";
  // A leaf that moves changes entries of the second switch alone.
  for (int i = 0; i < 300; ++i) put(key_of(77), "new " + std::to_string(i));
  EXPECT_NE(did(controller), Did::nothing);
  expect_trips(1, key_of(77), &controller);
  // A restarted second switch gets its part again.
  open_switches();
  open_reader();
  trips_of(key_of(5));
  EXPECT_EQ(did(controller), Did::installed);
  const std::uint64_t since = behind_->redirected();
  expect_trips(1, key_of(4321), &controller);
  EXPECT_GT(behind_->redirected(), since);
}

// Where READs go that no table has met is sent with the tables, and again when the root has moved.
TEST_F(InNetwork, BeforeACardSwitchesAreToldWhereTheRootIs) {
  start();
  fill(3'000);
  open_switch();
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {control()},
                              .limits = {.ranges = 4000},
                              .has_card = true,
                              .count_every_ns = 0});
  const auto core = node_->catalog().open<tree::MapCore>("m");
  ASSERT_TRUE(core) << message(core.error());
  const auto knows_root = [&] {
    const auto program = dataplane::SwitchProgram::parse(
        *dataplane::ControlClient::connect(control())->ask("program"));
    if (!program || program->maps().empty()) return false;
    const dataplane::HintTerms& terms = program->maps().front().hints;
    return terms.root == terms.base + (*core)->root_ref().offset();
  };
  ASSERT_EQ(did(controller), Did::installed);
  EXPECT_TRUE(knows_root());
  const wire::Ref before = (*core)->root_ref();
  for (std::uint64_t i = 3'000; (*core)->root_ref() == before; ++i) {
    put(key_of(i), "value " + std::to_string(i));  // until the root has a child more
  }
  did(controller);
  EXPECT_TRUE(knows_root());
}

// A switch for which nothing is left has nothing of the map, and gets nothing again and again.
TEST_F(InNetwork, ASwitchOfARowMayHaveNothing) {
  start();
  fill(2'000);
  open_switches();
  IndexController controller({.node = *client::parse_node_address(config_.node.fabric),
                              .map = "m",
                              .controls = {control(), control_behind()},
                              .limits = {.ranges = 4, .sets = 3},
                              .hops = {{.sets = 3}, {.sets = 0}},
                              .count_every_ns = 0});
  ASSERT_EQ(did(controller), Did::installed);
  lost_ = false;
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(did(controller) == Did::nothing || lost_) << round;
  }
  open_reader();
  trips_of(key_of(5));
  expect_trips(1, key_of(77), &controller);
  EXPECT_GE(switch_->redirected(), 1u);
  EXPECT_EQ(behind_->redirected(), 0u);
}

TEST_F(InNetwork, TablesFollowLeavesThatMove) {
  start();
  fill(5'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(5));
  Random random(seed_from_environment(3));
  std::uint64_t behind = 0;  // gets that tables led astray, and the node did not mend
  for (int i = 0; i < 3'000; ++i) {
    put(key_of(random.below(5'000)), "new " + std::to_string(i));
    if (i % 100 != 0) continue;
    behind += trips_of(key_of(random.below(5'000))) == 1 ? 0 : 1;
    did(controller);
    expect_trips(1, key_of(random.below(5'000)), &controller);  // once the switch has it
  }
  EXPECT_GT(controller.changes(), 0u);
  EXPECT_GT(behind + node_->services().part<offload::MapServices>().index_reads.followed.load(), 0u)
      << "none was late";
  put(key_of(4'999'999), std::string(3'000, 'v'));  // nodes split
  for (std::uint64_t i = 6'000; i < 9'000; ++i) put(key_of(i), std::string(40, 'w'));
  EXPECT_EQ(did(controller), Did::installed) << "the tree has another shape";
  for (std::uint64_t i = 6'000; i < 9'000; i += 97) expect_trips(1, key_of(i), &controller);
}

TEST_F(InNetwork, ADroppedMapIsNotRead) {
  start();
  fill(1'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(1));
  ASSERT_TRUE(writer_->drop_map("m"));
  const auto found = read_->get(key_of(2));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::not_found);
  auto round = controller.round();
  if (!round && round.error().error.code == Code::connection_lost) round = controller.round();
  ASSERT_FALSE(round);
  EXPECT_EQ(round.error().error.code, Code::not_found);
  model_.clear();
  written_.emplace(*writer_->create_map("m", kOptions));
  for (std::uint64_t i = 0; i < 500; ++i) put(key_of(i), "again " + std::to_string(i));
  EXPECT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(1));
  expect_trips(1, key_of(2), &controller);
}

// The common prefix of most keys is determined when the map is opened; other keys are found all the
// same, at no cost to those.
TEST_F(InNetwork, KeysBesideThePrefixAreFound) {
  start();
  fill(8'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  for (int opened = 0; opened < 2; ++opened) {  // before and after there are such
    open_reader();
    trips_of(key_of(1));
    if (opened == 0) {
      put("another", "1");
      put("zebra", "2");
      put("user", "3");
      did(controller);
    }
    for (const char* const key : {"another", "zebra", "user", "v", "a"}) trips_of(key);
    for (std::uint64_t i = 0; i < 8'000; i += 777) expect_trips(1, key_of(i), &controller);
  }
}

TEST_F(InNetwork, WhereMostKeysBeginOtherwiseTheMapIsOfferedAnew) {
  start();
  fill(3'000);
  open_switch();
  IndexController controller = this->controller();
  ASSERT_EQ(did(controller), Did::installed);
  open_reader();
  trips_of(key_of(1));
  const auto other = [](std::uint64_t i) { return "other" + key_of(i); };
  for (std::uint64_t i = 0; i < 3'000; ++i) put(other(i), "value " + std::to_string(i));
  for (std::uint64_t i = 0; i < 3'000; i += 333) trips_of(other(i));  // by the old prefix
  open_reader();  // clients that open the map now get another key
  trips_of(key_of(1));
  while (controller.round().value_or(Did::nothing) != Did::installed) {
  }
  const std::uint64_t before = switch_->redirected();
  for (std::uint64_t i = 0; i < 3'000; i += 333) {
    trips_of(other(i));
    trips_of(key_of(i));
  }
  EXPECT_GT(switch_->redirected(), before);
}

TEST_F(InNetwork, OtherWaysAreRefused) {
  config_.node.fabric = "shm:" + path("shared");
  start();
  for (const std::string& address : {"unix:" + socket(), "shm:" + path("shared")}) {
    const auto store = Store::connect(address, {.access = Access::in_network});
    ASSERT_FALSE(store) << address;
    EXPECT_EQ(store.error().code, Code::unsupported);
  }
  IndexController controller({.node = *client::parse_node_address("shm:" + path("shared")),
                              .map = "m",
                              .controls = {"c"},
                              .limits = {}});
  const auto round = controller.round();
  ASSERT_FALSE(round);
  EXPECT_EQ(round.error().error.code, Code::unsupported);
}

TEST_F(InNetwork, ANodeThatOffersNoMemoryIsRefused) {
  config_.node.one_sided = false;
  start();
  const auto store = Store::connect(address(), {.access = Access::in_network});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, Code::unsupported);
}

// Over UDP, where READs keep no order, the version takes a trip of its own.
TEST_F(InNetwork, OverUdpItTakesTwo) {
  reach_by("roce");
  config_.node.one_sided = true;
  start();
  fill(2'000);
  auto store = Store::connect(address(), {.access = Access::in_network});
  ASSERT_TRUE(store) << message(store.error());
  reader_.emplace(std::move(*store));
  read_.emplace(*reader_->open_map("m"));
  trips_of(key_of(1));
  for (std::uint64_t i = 0; i < 2'000; i += 333) expect_trips(2, key_of(i));
}

TEST_F(InNetwork, TheCApiReadsSoToo) {
  start();
  fill(500);
  open_switch();
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.access = ESPALIER_ACCESS_IN_NETWORK;
  espalier_store* store = nullptr;
  const std::string at = "roce+memif:" + path("clients");
  ASSERT_EQ(espalier_store_open(at.c_str(), &options, &store), ESPALIER_OK)
      << espalier_error_message();
  espalier_map* map = nullptr;
  ASSERT_EQ(espalier_map_open(store, {"m", 1}, &map), ESPALIER_OK) << espalier_error_message();
  espalier_item* item = nullptr;
  ASSERT_EQ(espalier_item_create(&item), ESPALIER_OK);
  const std::string key = key_of(33);
  std::uint32_t found = 0;
  ASSERT_EQ(espalier_map_get(map, {key.data(), key.size()}, item, &found), ESPALIER_OK);
  EXPECT_EQ(found, 1u);
  espalier_item_destroy(item);
  espalier_map_close(map);
  EXPECT_EQ(espalier_store_close(store), ESPALIER_OK);
  EXPECT_EQ(switch_->redirected(), 0u);
}

}  // namespace
}  // namespace espalier::test
