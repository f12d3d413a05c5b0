// SPDX-License-Identifier: Apache-2.0
// `espalier switch`: one that runs on a thread of its own, between `fabric serve` and its ping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "dataplane/control_client.hpp"
#include "tools/stop_request.hpp"
#include "tools/testing/fabric_serving_fixture.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTables =
    "espalier-switch 1\nmap 1 2\nespalier-tables 1\nroot 16 4 0\nway 40>0\nset\nnode 0 5 40\n";

class SwitchCommandConcurrency : public ::testing::Test {
 protected:
  SwitchCommandConcurrency() { tool.has_fabric = true; }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  [[nodiscard]] std::vector<std::string> sockets() const {
    return {"--clients", path("c"), "--node", path("n"), "--control", path("s")};
  }
  nlohmann::json status() {
    EXPECT_EQ(tool.run({"switch", "status", "--control", path("s"), "--json"}), kOk) << tool.err();
    return nlohmann::json::parse(tool.out());
  }

  base::TemporaryFolder folder;
  Tool tool;
};

TEST_F(SwitchCommandConcurrency, FramesGoThroughAndAreCounted) {
  Serving node({"roce+memif:" + path("n")});
  ASSERT_THAT(node.said(), StartsWith("listening at ")) << node.tool().err();
  Serving between(sockets(), "", {"switch", "run"});
  ASSERT_THAT(between.said(), StartsWith("a switch: clients come to ")) << between.tool().err();
  ASSERT_EQ(tool.run({"fabric", "ping", "roce+memif:" + path("c"), "--count", "50"}), kOk)
      << tool.err();
  const auto now = status();
  EXPECT_GE(now["frames_to_node"], 50);
  EXPECT_GE(now["frames_to_clients"], 50);
  EXPECT_EQ(now["frames_lost"], 0);
  EXPECT_EQ(now["redirected"], 0);
  EXPECT_EQ(now["maps"], 0);
  EXPECT_EQ(between.stop(), kOk);
  EXPECT_THAT(between.tool().out(), HasSubstr("stopped (SIGTERM): "));
}

/// Asks to stop when it is waited for a second time.
class SecondStop final : public StopRequest {
 public:
  explicit SecondStop(std::vector<std::uint64_t>& waits) : waits_(waits) {}
  std::string wait(std::optional<std::uint64_t> at_most_ns) override {
    waits_.push_back(at_most_ns.value_or(0));
    return waits_.size() < 2 ? "" : "SIGINT";
  }

 private:
  std::vector<std::uint64_t>& waits_;
};

TEST_F(SwitchCommandConcurrency, StatusIsShownAgainAndAgain) {
  Serving between(sockets(), "", {"switch", "run"});
  ASSERT_THAT(between.said(), StartsWith("a switch: clients come to ")) << between.tool().err();
  const std::vector<std::string> words{"switch", "status", "--control", path("s"), "--every", "3"};
  EXPECT_EQ(tool.run(words), kFailed) << "there is nobody to stop it";
  std::vector<std::uint64_t> waits;
  tool.notice_stop = [&] { return std::make_unique<SecondStop>(waits); };
  ASSERT_EQ(tool.run(words), kOk) << tool.err();
  EXPECT_EQ(waits, (std::vector<std::uint64_t>{3'000'000'000, 3'000'000'000}));
  EXPECT_THAT(tool.out(), StartsWith("maps "));
  EXPECT_THAT(tool.out(), HasSubstr("\n\nmaps "));
  waits.clear();
  auto lines = words;
  lines.push_back("--json");
  ASSERT_EQ(tool.run(lines), kOk) << tool.err();
  EXPECT_EQ(std::ranges::count(tool.out(), '\n'), 2);
  EXPECT_EQ(between.stop(), kOk);
  waits.clear();
  EXPECT_EQ(tool.run(words), kFailed) << "the switch is gone";
  EXPECT_TRUE(waits.empty());
}

TEST_F(SwitchCommandConcurrency, TablesAreTakenFromFiles) {
  auto words = sockets();
  words.insert(words.end(), {"--tables", "content"});
  Serving between(words, kTables, {"switch", "run"});
  EXPECT_EQ(status()["maps"], 1);
  tool.files.contents["none"] = "espalier-switch 1\n";
  EXPECT_EQ(tool.run({"switch", "install", "none", "--control", path("s")}), kOk) << tool.err();
  EXPECT_EQ(status()["maps"], 0);
  tool.files.contents["bad"] = "espalier-switch 1\nmap 1\n";
  EXPECT_EQ(tool.run({"switch", "install", "bad", "--control", path("s")}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("the switch refuses: line 2: wanted: map KEYED REDIRECT"));
  EXPECT_EQ(status()["programs_installed"], 2);
  EXPECT_EQ(tool.run({"switch", "status", "--control", path("s")}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("programs_installed           2\n"));
}

TEST_F(SwitchCommandConcurrency, TablesAreShownAsHardwareHasThem) {
  auto words = sockets();
  words.insert(words.end(), {"--tables", "content"});
  Serving between(words, kTables, {"switch", "run"});
  ASSERT_EQ(tool.run({"switch", "resources", "--control", path("s")}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("map 1: target tofino, 1 switch, "));
  EXPECT_THAT(tool.out(), HasSubstr("fat root"));
  ASSERT_EQ(tool.run({"switch", "entries", "--control", path("s")}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), HasSubstr("\ntable_add index_ingress.set_1_pivots index_ingress.compare "
                                    "0x0 0x0 => 0x5 0xffffffffffffffff "));
  EXPECT_THAT(tool.out(), EndsWith("table_add index_ingress.maps index_ingress.set_map 0x1 => 0x0 "
                                   "0x2 0x0 0x0 0x0\n"));

  tool.files.contents["tables"] = kTables;
  ASSERT_EQ(tool.run({"switch", "resources", "tables", "--json"}), kOk) << tool.err();
  const auto line = nlohmann::json::parse(tool.out());
  EXPECT_EQ(line["map"], "1");
  std::uint64_t sram = 0;
  for (const auto& table : line["tables"]) sram += table["sram_blocks"].get<std::uint64_t>();
  EXPECT_EQ(line["sram_blocks"], sram);
  EXPECT_EQ(tool.run({"switch", "resources", "tables", "--sram-blocks", "0"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("the tables of the map with the key 1 do not fit: stage "));
  tool.files.contents["none"] = "espalier-switch 1\n";
  EXPECT_EQ(tool.run({"switch", "resources", "none"}), kFailed);
  tool.files.contents["bad"] = "espalier-switch 1\nmap 1\n";
  EXPECT_EQ(tool.run({"switch", "entries", "bad"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("'bad': line 2: wanted: map KEYED REDIRECT"));
  tool.files.contents["other"] =
      "espalier-switch 1\nmap 1 2\nespalier-tables 1\nroot 8 8 0\nway 40\n";
  EXPECT_EQ(tool.run({"switch", "entries", "other"}), kFailed);
  EXPECT_THAT(tool.err(),
              HasSubstr("the P4 program has no room for these tables: a fat root that"));
  EXPECT_EQ(tool.run({"switch", "entries"}), kUsage);
  EXPECT_EQ(tool.run({"switch", "resources", "--json"}), kUsage);
  EXPECT_EQ(tool.run({"switch", "entries", "tables", "--control", path("s")}), kUsage);
}

/// Does something each time that it is waited for, and asks to stop behind the last.
class StopBehind final : public StopRequest {
 public:
  explicit StopBehind(std::vector<std::function<void()>> steps) : steps_(std::move(steps)) {}
  std::string wait(std::optional<std::uint64_t>) override {
    if (next_ == steps_.size()) return "SIGTERM";
    steps_[next_++]();
    return "";
  }

 private:
  std::vector<std::function<void()>> steps_;
  std::size_t next_ = 0;
};

// A changed entry is modified; if match fields change, the whole table is sent again.
TEST_F(SwitchCommandConcurrency, EntriesFollowTheTablesOfASwitch) {
  auto words = sockets();
  words.insert(words.end(), {"--tables", "content"});
  Serving between(words, kTables, {"switch", "run"});
  EXPECT_EQ(tool.run({"switch", "entries", "--control", path("s"), "--follow"}), kFailed)
      << "there is nobody to stop it";
  const auto ask = [this](std::string_view word, std::string_view body) {
    auto client = dataplane::ControlClient::connect(path("s"));
    ASSERT_TRUE(client && client->ask(word, body));
  };
  tool.notice_stop = [&] {
    return std::make_unique<StopBehind>(std::vector<std::function<void()>>{
        [&] { ask("change", "change 1 way 0 80\nchange 1 set 0 0 0 90\n"); }, [] {},
        [&] {
          ask("install", "espalier-switch 1\nmap 3 4\nespalier-tables 1\nroot 16 4 0\nway 50\n");
        }});
  };
  ASSERT_EQ(tool.run({"switch", "entries", "--control", path("s"), "--follow"}), kOk) << tool.err();
  EXPECT_THAT(
      tool.out(),
      EndsWith("table_add index_ingress.maps index_ingress.set_map 0x1 => 0x0 0x2 0x0 0x0 0x0\n"
               "table_modify index_ingress.fat_root_ways index_ingress.set_way 0 0x80 0x1 0x0 0x0\n"
               "table_modify index_ingress.set_1_ways index_ingress.set_way 0 0x90 0x0 0x0 0x0\n"
               "table_clear index_ingress.maps\ntable_clear index_ingress.parts\n"
               "table_clear index_ingress.fat_root_1\ntable_clear index_ingress.fat_root_2\n"
               "table_clear index_ingress.fat_root_3\ntable_clear index_ingress.fat_root_4\n"
               "table_clear index_ingress.fat_root_ways\n"
               "table_clear index_ingress.set_1_pivots\ntable_clear index_ingress.set_1_ways\n"
               "table_clear index_ingress.set_2_pivots\ntable_clear index_ingress.set_2_ways\n"
               "table_clear index_ingress.set_3_pivots\ntable_clear index_ingress.set_3_ways\n"
               "table_add index_ingress.fat_root_ways index_ingress.set_way 0x0 0x0 => 0x50 0x0 "
               "0x0 0x0\n"
               "table_add index_ingress.maps index_ingress.set_map 0x3 => 0x0 0x4 0x0 0x0 0x0\n"));
  tool.files.contents["tables"] = kTables;
  EXPECT_EQ(tool.run({"switch", "entries", "tables", "--follow"}), kUsage);
}

TEST_F(SwitchCommandConcurrency, EachNodeHasClientsOfItsOwn) {
  auto words = sockets();
  words.insert(words.begin(), {"switch", "run", "--node", path("m")});
  EXPECT_EQ(tool.run(words), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("there are 1 of --clients and 2 of --node"));
  Serving between({"--clients", path("c"), "--node", path("n"), "--clients", path("d"), "--node",
                   path("m"), "--control", path("s")},
                  "", {"switch", "run"});
  EXPECT_THAT(between.said(), HasSubstr("clients of node 1 come to ")) << between.tool().err();
  Serving second({"roce+memif:" + path("m")});
  ASSERT_THAT(second.said(), StartsWith("listening at ")) << second.tool().err();
  ASSERT_EQ(tool.run({"fabric", "ping", "roce+memif:" + path("d"), "--count", "20"}), kOk)
      << tool.err();
  EXPECT_GE(status()["frames_to_node"], 20);
  EXPECT_EQ(between.stop(), kOk);
}

TEST_F(SwitchCommandConcurrency, WhatIsWrongIsSaid) {
  EXPECT_EQ(tool.run({"switch", "status", "--control", path("s")}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("no switch answers at "));
  EXPECT_EQ(tool.run({"switch", "status"}), kUsage);
  EXPECT_EQ(tool.run({"switch", "run", "--clients", path("c")}), kUsage);
  EXPECT_EQ(tool.run({"switch"}), kUsage);
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--sets", "8", "--nodes", "20000"}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("160000 nodes in 8 sets are more than a switch takes"));
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--sets", "3", "--nodes", "100,40000"}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("80100 nodes in 3 sets are more than a switch takes"));
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--nodes", "1,2,3,4,5,6,7,8,9"}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--nodes has 9 numbers"));
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--control", path("s")}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("a switch is named twice"));
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--control", path("t"), "--row", "0,2,1"}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("--row has 3 numbers, and there are 2 switches"));
  EXPECT_EQ(tool.run({"switch", "controller", "--at", "roce+memif:" + path("n"), "--control",
                      path("s"), "--control", path("t"), "--row", "5,4"}),
            kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("at most 8 sets together"));
  auto elsewhere = sockets();
  elsewhere.insert(elsewhere.begin(), {"switch", "run"});
  elsewhere.insert(elsewhere.end(), {"--stands", "above"});
  EXPECT_EQ(tool.run(elsewhere), kUsage);
  auto words = sockets();
  words.insert(words.end(), {"--tables", "content"});
  {
    Serving bad(words, "espalier-switch 2\n", {"switch", "run"});
    EXPECT_EQ(bad.stop(), kFailed);
    EXPECT_THAT(bad.tool().err(), HasSubstr("'content': line 1: the text does not begin with"));
  }
  Serving first(sockets(), "", {"switch", "run"});
  Serving second(sockets(), "", {"switch", "run"});
  EXPECT_EQ(second.stop(), kFailed);
  EXPECT_THAT(second.tool().err(), HasSubstr("somebody listens at "));
  Serving nowhere({"--clients", "", "--node", "n", "--control", "s"}, "", {"switch", "run"});
  EXPECT_EQ(nowhere.stop(), kUsage);
}

}  // namespace
}  // namespace espalier::tools
