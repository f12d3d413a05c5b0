// SPDX-License-Identifier: Apache-2.0
// `espalier switch topology` as people run it: two nodes, a root switch and a switch before each
// node, all of them programs, and clients whose READs carry keys.
//
//   clients -- core (fat roots) -- e0 (layers) -- node 0
//                              \-- e1 (layers) -- node 1
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "dataplane/control_client.hpp"
#include "espalier/map.hpp"
#include "shards/sharding.hpp"
#include "tests/support/node_program.hpp"

namespace espalier::test {
namespace {

using ::testing::HasSubstr;

// Much more than anything should take, on a machine that does much else.
constexpr std::uint64_t kTopologyBoundNs = 60'000'000'000;
constexpr std::uint64_t kTopologyKeys = 6'000;

class SwitchTopology : public ::testing::Test {
 protected:
  static constexpr std::array<const char*, 3> kSwitchNames{"core", "e0", "e1"};

  SwitchTopology() {
    std::ofstream(path("topology"))
        << "espalier-topology 1\n"
        << "# the fat roots in the core, layers before each node\n"
        << "ranges 8\n"
        << "switch core " << path("core") << "\nswitch e0 " << path("e0") << " 3\nswitch e1 "
        << path("e1") << " 3\nlink core e0\nlink core e1\nroot core\nnode 0 e0 roce+memif:"
        << path("n0") << "\nnode 1 e1 roce+memif:" << path("n1") << "\n";
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  static std::string key_of(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    return "user" + std::string(7 - digits.size(), '0') + digits;
  }
  static std::string value_of(std::uint64_t number) { return "value " + std::to_string(number); }

  /// Starts the program in a folder of this name, where its output goes into `log`.
  std::unique_ptr<NodeProgram> start(const std::string& name,
                                     const std::vector<std::string>& arguments) {
    const auto folder = folder_ / (name + ".run");
    std::filesystem::create_directories(folder);
    std::vector<std::string> words{ESPALIER_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return std::make_unique<NodeProgram>(folder, words);
  }
  [[nodiscard]] std::string log_of(const std::string& name) const {
    std::ifstream in(folder_ / (name + ".run") / "log", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  void start_node(std::size_t number) {
    const std::string digit = std::to_string(number);
    nodes_[number] = start("n" + digit, {"serve", "--node-socket", path("u" + digit),
                                         "--node-fabric", "roce+memif:" + path("n" + digit),
                                         "--node-one-sided", "on", "--memory-limit", "64MiB",
                                         "--memory-huge-pages", "no"});
    ASSERT_EQ(nodes_[number]->next_message(), "READY=1") << log_of("n" + digit);
  }
  /// The core has clients' sockets c0 and c1, and is a client of the others at m0 and m1.
  void start_switch(std::size_t number) {
    const std::string name = kSwitchNames[number];
    std::vector<std::string> words{"switch", "run", "--control", path(name)};
    if (number == 0) {
      words.insert(words.end(), {"--clients", path("c0"), "--node", path("m0"), "--clients",
                                 path("c1"), "--node", path("m1"), "--stands", "first"});
    } else {
      const std::string digit = std::to_string(number - 1);
      words.insert(words.end(), {"--clients", path("m" + digit), "--node", path("n" + digit),
                                 "--stands", "last", "--number", digit});
    }
    switches_[number].reset();
    switches_[number] = start(name, words);
    await([&] { return dataplane::ControlClient::connect(path(name)).has_value(); });
  }
  void start_controller(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"switch", "topology", path("topology"), "--map", "m"};
    words.insert(words.end(), more.begin(), more.end());
    controller_ = start("controller", words);
  }
  void start_all() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) start_node(i);
    for (const std::size_t number : {1, 2, 0}) start_switch(number);
  }

  /// Looks again and again, until it is so; else the test fails.
  void await(const std::function<bool()>& is_so) {
    const base::Stopwatch watch;
    while (!is_so()) {
      ASSERT_LT(watch.elapsed_ns(), kTopologyBoundNs) << log_of("controller") << log_of("core");
      std::this_thread::yield();
    }
  }
  /// A number of a switch's status; nothing: it does not answer.
  [[nodiscard]] std::optional<std::uint64_t> number_of(std::size_t number,
                                                       const std::string& wanted) const {
    auto client = dataplane::ControlClient::connect(path(kSwitchNames[number]));
    if (!client) return std::nullopt;
    const auto status = client->ask("status");
    if (!status) return std::nullopt;
    std::istringstream lines(*status);
    std::string name;
    for (std::uint64_t value = 0; lines >> name >> value;) {
      if (name == wanted) return value;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool have_maps(std::uint64_t core, std::uint64_t each) const {
    return number_of(0, "maps") == core && number_of(1, "maps") == each &&
           number_of(2, "maps") == each;
  }

  void fill() {
    const std::string first = "roce+memif:" + path("c0");
    const auto made = client::create_shards("m", MapOptions{.node_bytes = 4096, .log_bytes = 512},
                                            {{"", first}, {key_of(kTopologyKeys / 2),
                                                           "roce+memif:" + path("c1")}});
    ASSERT_TRUE(made) << message(made.error().error) << made.error().words;
    auto store = Store::connect(first);
    ASSERT_TRUE(store) << message(store.error());
    auto map = store->open_map("m");
    ASSERT_TRUE(map) << message(map.error());
    for (std::uint64_t i = 0; i < kTopologyKeys; ++i) {
      ASSERT_TRUE(map->put(key_of(i), value_of(i)));
    }
  }
  /// Gets of both nodes' keys are right, and go on until both switches before them redirect some.
  void expect_redirected() {
    auto store =
        Store::connect("roce+memif:" + path("c0"), {.access = Access::in_network});
    ASSERT_TRUE(store) << message(store.error());
    auto map = store->open_map("m");
    ASSERT_TRUE(map) << message(map.error());
    const auto before = std::array{number_of(1, "redirected"), number_of(2, "redirected")};
    std::uint64_t next = 0;
    await([&] {
      for (int i = 0; i < 50; ++i) {
        next = (next + 1'171) % kTopologyKeys;
        const auto found = map->get(key_of(next));
        EXPECT_TRUE(found) << message(found.error());
        EXPECT_TRUE(found && *found && (*found)->value == value_of(next)) << key_of(next);
      }
      return HasFailure() || (number_of(1, "redirected") > before[0] &&
                              number_of(2, "redirected") > before[1]);
    });
  }

  base::TemporaryFolder folder_;
  std::array<std::unique_ptr<NodeProgram>, 2> nodes_;
  std::array<std::unique_ptr<NodeProgram>, 3> switches_;
  std::unique_ptr<NodeProgram> controller_;
};

TEST_F(SwitchTopology, OneControllerFillsTheSwitchesOfAllNodes) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  ASSERT_NO_FATAL_FAILURE(fill());
  start_controller();
  ASSERT_NO_FATAL_FAILURE(await([&] { return have_maps(2, 1); }));
  ASSERT_NO_FATAL_FAILURE(expect_redirected());
  EXPECT_THAT(log_of("controller"), HasSubstr("installed: 3 of 3 switches, 0 out of reach\n"));
  controller_->send(SIGTERM);
  EXPECT_EQ(controller_->wait(), 0);
  EXPECT_THAT(log_of("controller"), HasSubstr("stopped (SIGTERM): "));
  EXPECT_TRUE(have_maps(0, 0)) << "they forget the map";
}

TEST_F(SwitchTopology, SwitchesAreRestartedOneByOne) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  ASSERT_NO_FATAL_FAILURE(fill());
  start_controller({"--restarts"});
  for (std::size_t number = 0; number < switches_.size(); ++number) {
    const std::string name = kSwitchNames[number];
    ASSERT_NO_FATAL_FAILURE(await([&] {
      return log_of("controller").find("restart " + name + " " + path(name) + "\n") !=
             std::string::npos;
    }));
    EXPECT_TRUE(have_maps(2, 1)) << "all have their tables before " << name << " is restarted";
    switches_[number]->send(SIGTERM);
    EXPECT_EQ(switches_[number]->wait(), 0);
    ASSERT_NO_FATAL_FAILURE(start_switch(number));
  }
  ASSERT_NO_FATAL_FAILURE(await([&] {
    return log_of("controller").find("restarted: all 3 switches\n") != std::string::npos;
  }));
  EXPECT_TRUE(have_maps(2, 1));
  expect_redirected();
}

TEST_F(SwitchTopology, ANodeThatIsGoneVoidsTheTables) {
  ASSERT_NO_FATAL_FAILURE(start_all());
  ASSERT_NO_FATAL_FAILURE(fill());
  start_controller();
  ASSERT_NO_FATAL_FAILURE(await([&] { return have_maps(2, 1); }));
  nodes_[1].reset();
  ASSERT_NO_FATAL_FAILURE(await([&] { return have_maps(0, 0); }));
  await([&] { return log_of("controller").find(" at node 1, ") != std::string::npos; });
}

// Nothing is started by a topology that is none.
TEST_F(SwitchTopology, WhatIsWrongWithATopologyIsSaid) {
  std::ofstream(path("topology"), std::ios::app) << "link core e9\n";
  start_controller();
  EXPECT_EQ(controller_->wait(), 1);
  EXPECT_THAT(log_of("controller"), HasSubstr("line 12: no line above names a switch 'e9'"));
  std::ofstream(path("topology")) << "espalier-topology 1\nswitch s s\nroot s\nnode 0 s here\n";
  start_controller();
  EXPECT_EQ(controller_->wait(), 1);
  EXPECT_THAT(log_of("controller"), HasSubstr("'here' is no address of a node"));
}

}  // namespace
}  // namespace espalier::test
