// SPDX-License-Identifier: Apache-2.0
// espalier check on a node in this process: sound maps, and one whose memory a test breaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class CheckNode : public NodeTool {
 protected:
  /// Changes every copy of these bytes in the memory of the node's maps. Returns how many it found.
  std::size_t overwrite(const std::string& bytes, const std::string& with) {
    const memory::Region& region = node->store().region;
    const std::string_view all(reinterpret_cast<const char*>(region.base()), region.end_offset());
    std::size_t found = 0;
    for (std::size_t at = all.find(bytes); at != std::string_view::npos;
         at = all.find(bytes, at + 1)) {
      std::memcpy(region.at(at), with.data(), with.size());
      ++found;
    }
    return found;
  }
  void load(int items) {
    std::string& file = tool.files.contents["in.tsv"];
    for (int i = 0; i < items; ++i) {
      file += "key" + std::to_string(100'000 + i) + "\tvalue" + std::to_string(i) + "\n";
    }
    ASSERT_EQ(run({"load", "in.tsv"}), kOk) << tool.err();
  }
};

TEST_F(CheckNode, ComparesAWalkOfAHashMapWithGetsAndItsNumber) {
  ASSERT_EQ(run_map({"create", "h", "--kind", "hash"}), kOk) << tool.err();
  ASSERT_EQ(run_map({"create", "plain", "--kind", "hash", "--no-versions"}), kOk);
  ASSERT_EQ(run({"put", "--map", "h", "bird", "robin"}), kOk);
  ASSERT_EQ(run({"put", "--map", "h", "tree", "pear"}), kOk);
  EXPECT_EQ(run({"check"}), kOk) << tool.err() << tool.out();
  EXPECT_THAT(tool.out(), HasSubstr("hash map 'h': 2 items by a walk, 2 gets; both agree, and the "
                                    "map's own number; no faults found\n"));
  EXPECT_THAT(tool.out(), HasSubstr("hash map 'plain': 0 items by a walk, 0 gets; not compared in "
                                    "all, for others may have written; no faults found\n"));
  EXPECT_EQ(run({"check", "--map", "h", "--json"}), kOk);
  auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["kind"], "hash");
  EXPECT_EQ(object["items"], 2);
  EXPECT_EQ(object["compared"], true);
  EXPECT_EQ(object["gets"], 2);
  // A key that is not where its hash says is never found.
  ASSERT_GE(overwrite("treepear", "twigpear"), 1u);
  EXPECT_EQ(run({"check", "--map", "h"}), kFailed);
  EXPECT_EQ(tool.out(),
            "hash map 'h': fault: a walk delivers 1 items where the map's own number "
            "is 2\n");
}

TEST_F(CheckNode, FindsNoFaultInSoundMaps) {
  load(10'000);
  EXPECT_EQ(run_map({"create", "empty"}), kOk);
  EXPECT_EQ(run_map({"create", "plain\x1b", "--no-versions", "--node-bytes", "512"}), kOk);
  EXPECT_EQ(run({"put", "--map", "plain\x1b", "a", "1"}), kOk);
  EXPECT_EQ(run({"check"}), kOk) << tool.err() << tool.out();
  EXPECT_THAT(tool.out(),
              MatchesRegex("map 'default': 10,000 items; scans, counts, [0-9]+ gets and [0-9]+ "
                           "floors agree; no faults found\n"
                           "map 'empty': 0 items; scans, counts, 0 gets and 1 floor agree; no "
                           "faults found\n"
                           "map 'plain.x1b': 1 item in order; without versions no more can be "
                           "compared; no faults found\n"));
  EXPECT_EQ(tool.err(), "");
  EXPECT_EQ(run({"check", "--map", "default", "--json"}), kOk);
  const auto object = nlohmann::json::parse(tool.out());
  EXPECT_EQ(object["map"], "default");
  EXPECT_EQ(object["items"], 10'000);
  EXPECT_EQ(object["compared"], true);
  EXPECT_EQ(object["counted_in_all"], true);
  EXPECT_EQ(object["versions_held"], 1);
  EXPECT_GE(object["gets"], 3 * 16);
  EXPECT_TRUE(object["faults"].empty());
}

TEST_F(CheckNode, NamesMapAndKeyOfABrokenMap) {
  load(20);
  ASSERT_EQ(run({"check"}), kOk) << tool.out();
  ASSERT_GE(overwrite("key100007", "key10000z"), 1U);
  EXPECT_EQ(run({"check"}), kFailed);
  EXPECT_EQ(tool.out(),
            "map 'default': fault: an ascending scan delivers key 'key100008' after 'key10000z'\n");
  EXPECT_EQ(run({"check", "--json"}), kFailed);
  EXPECT_EQ(nlohmann::json::parse(tool.out())["faults"].size(), 1U);
}

// Before its turn, and in the middle of it.
TEST_F(CheckNode, GoesOnWhenAMapIsDroppedMeanwhile) {
  load(100);
  ASSERT_EQ(run_map({"create", "stays"}), kOk);
  for (const std::string said_before : {"", "map 'default': 100 items"}) {
    ASSERT_EQ(run_map({"create", "gone"}), kOk);
    bool dropped = false;
    tool.at_tick = [&] {
      if (dropped || tool.out().find(said_before) == std::string::npos) return;
      auto other = Store::connect(address);
      dropped = other && other->drop_map("gone");
    };
    EXPECT_EQ(run({"check"}), kOk) << tool.err();
    tool.at_tick = nullptr;
    EXPECT_TRUE(dropped);
    EXPECT_THAT(tool.out(), HasSubstr("map 'default': 100 items"));
    EXPECT_THAT(tool.out(), HasSubstr("map 'gone': dropped meanwhile\n"));
    EXPECT_THAT(tool.out(), HasSubstr("map 'stays': 0 items"));
  }
  EXPECT_EQ(run({"check", "--map", "gone"}), kFailed);
}

TEST_F(CheckNode, ShowsHowFarItHasComeOnATerminal) {
  load(10'000);
  tool.err_is_terminal = true;
  tool.tick_ns = 400'000'000;
  EXPECT_EQ(run({"check"}), kOk);
  EXPECT_THAT(tool.err(), HasSubstr("checking 'default': 4,096 of 10,000 items (41 %), "));
  EXPECT_TRUE(tool.err().ends_with("\r\x1b[K")) << tool.err();
}

TEST_F(CheckNode, RefusesWhatHasNoMeaningThere) {
  EXPECT_EQ(run({"check", "--map", "none"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("has no map 'none'"));
  EXPECT_EQ(run({"check", "--node-bytes", "512"}), kUsage);
  EXPECT_THAT(tool.err(),
              HasSubstr("--node-bytes says what a new map is like, and the map is on a node"));
  EXPECT_EQ(run({"check", "--format", "csv"}), kUsage);
  tool.files.contents["a.tsv"] = "a\t1\n";
  EXPECT_EQ(run({"check", "a.tsv"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("the data is either in files or on a node"));
  tool.variables = {{"ESPALIER_AT", address}};
  EXPECT_EQ(tool.run({"check"}), kOk);
  EXPECT_THAT(tool.out(), HasSubstr("map 'default': 0 items"));
  EXPECT_EQ(tool.run({"check", "a.tsv"}), kOk) << "the file, not the node";
  EXPECT_THAT(tool.out(), HasSubstr("items       1\n"));
  node.reset();
  EXPECT_EQ(run({"check"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("no node listens at " + address));
}

}  // namespace
}  // namespace espalier::tools
