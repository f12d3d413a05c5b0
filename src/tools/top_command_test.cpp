// SPDX-License-Identifier: Apache-2.0
// espalier top on a node in this process: as reports, and on a terminal that the test plays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <nlohmann/json.hpp>

#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// What a terminal was shown, and what happens on it.
struct Stage {
  std::vector<std::vector<ScreenLine>> pictures;
  std::deque<ScreenEvent> events;  ///< none left: the end
  ScreenSize size;
  std::function<void(std::size_t pictures)> between = [](std::size_t) {};
};

class StageScreen final : public Screen {
 public:
  explicit StageScreen(Stage& stage) : stage_(stage) {}
  ScreenSize size() override { return stage_.size; }
  void show(std::span<const ScreenLine> lines) override {
    stage_.pictures.emplace_back(lines.begin(), lines.end());
  }
  ScreenEvent wait(std::uint64_t) override {
    stage_.between(stage_.pictures.size());
    if (stage_.events.empty()) return {ScreenEvent::Kind::end, 0};
    const ScreenEvent event = stage_.events.front();
    stage_.events.pop_front();
    return event;
  }

 private:
  Stage& stage_;
};

class TopCommand : public NodeTool {
 protected:
  void play() {
    tool.open_screen = [this] { return std::make_unique<StageScreen>(stage); };
  }
  static ScreenEvent key(char c) { return {ScreenEvent::Kind::key, c}; }

  Stage stage;
};

TEST_F(TopCommand, PrintsOneReport) {
  EXPECT_EQ(run({"put", "a", "1"}), kOk);
  EXPECT_EQ(run({"top", "--once"}), kOk) << tool.err();
  EXPECT_THAT(tool.out(), StartsWith("espalier "));
  EXPECT_THAT(tool.out(), HasSubstr(" at " + address + ", up "));
  EXPECT_THAT(tool.out(), HasSubstr("; rates since its start\n"));
  EXPECT_THAT(tool.out(), HasSubstr("\nput "));
  EXPECT_THAT(tool.out(), HasSubstr("  default\n"));
  EXPECT_THAT(tool.out(), HasSubstr("of 64.0 MiB ("));
  EXPECT_THAT(tool.pauses_ns, SizeIs(0));
}

TEST_F(TopCommand, JsonHasALineForEachInterval) {
  EXPECT_EQ(run({"put", "a", "1"}), kOk);
  EXPECT_EQ(run_map({"create", "odd\x1b"}), kOk);
  EXPECT_EQ(run({"top", "--json", "--count", "2", "--interval", "0.5"}), kOk) << tool.err();
  EXPECT_THAT(tool.pauses_ns, ElementsAre(500'000'000));
  const std::string text = tool.out();
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  const auto second = nlohmann::json::parse(text.substr(text.find('\n')));
  EXPECT_EQ(first["at"], address);
  EXPECT_EQ(first["since_start"], true);
  EXPECT_EQ(first["maps"][0]["map"], "default");
  EXPECT_EQ(first["maps"][0]["items"], 1);
  EXPECT_EQ(first["maps"][1]["map"], "odd\x1b");
  EXPECT_EQ(first["memory"]["limit_bytes"], 64 << 20);
  EXPECT_GT(first["memory"]["taken_bytes"], 0);
  EXPECT_EQ(first["connections"], 1);
  EXPECT_EQ(first["workers"].size(), 1U);
  EXPECT_GT(first["epochs"]["participants"], 0);
  EXPECT_EQ(second["since_start"], false);
  EXPECT_GT(second["interval_s"], 0);
  // Between the two readings the node was asked for its numbers and samples once: the second time.
  for (const auto& offload : second["offloads"]) {
    const bool numbers = offload["offload"] == "node_stats";
    const bool samples = offload["offload"] == "object_samples";
    EXPECT_EQ(offload["requests_per_s"] > 0, numbers || samples) << offload;
    if (numbers) {
      EXPECT_EQ(offload["requests"], 2);
    }
    if (samples) {
      EXPECT_EQ(offload["requests"], 1) << "they are asked for behind the numbers";
    }
  }
}

TEST_F(TopCommand, DrawsUntilItIsToldToEnd) {
  play();
  stage.events = {{ScreenEvent::Kind::time, 0},
                  key('x'),
                  {ScreenEvent::Kind::time, 0},
                  key('q'),
                  {ScreenEvent::Kind::time, 0}};
  EXPECT_EQ(run({"top"}), kOk) << tool.err();
  EXPECT_EQ(tool.out(), "");
  ASSERT_THAT(stage.pictures, SizeIs(3));
  EXPECT_THAT(stage.pictures[0].front().text, HasSubstr("; rates since"));
  EXPECT_THAT(stage.pictures[2].front().text, HasSubstr("; rates of"));
  EXPECT_THAT(stage.pictures[2].back().text, HasSubstr("q quits"));
  stage.pictures.clear();
  stage.events = {{ScreenEvent::Kind::time, 0}, {ScreenEvent::Kind::time, 0}};
  EXPECT_EQ(run({"top", "--count", "2"}), kOk);
  EXPECT_THAT(stage.pictures, SizeIs(2));
  stage.pictures.clear();
  stage.events.clear();  // a signal
  EXPECT_EQ(run({"top"}), kOk);
  EXPECT_THAT(stage.pictures, SizeIs(1));
}

TEST_F(TopCommand, KeysAndWindowsChangeThePictureAtOnce) {
  play();
  stage.events = {key('s'), {ScreenEvent::Kind::resized, 0}};
  stage.between = [this](std::size_t pictures) {
    if (pictures == 2) stage.size = {40, 12};
  };
  EXPECT_EQ(run({"top", "--sort", "size"}), kOk);
  ASSERT_THAT(stage.pictures, SizeIs(3));
  EXPECT_THAT(stage.pictures[0].back().text, HasSubstr("now by size"));
  EXPECT_THAT(stage.pictures[1].back().text, HasSubstr("now by name"));
  EXPECT_EQ(stage.pictures[1].front(), stage.pictures[0].front()) << "the same numbers";
  EXPECT_THAT(stage.pictures[2], SizeIs(12));
}

TEST_F(TopCommand, ShowsThatTheNodeIsGoneAndFindsTheNextOne) {
  play();
  stage.events = {{ScreenEvent::Kind::time, 0}, {ScreenEvent::Kind::time, 0}};
  stage.between = [this](std::size_t pictures) {
    if (pictures == 1) node.reset();
    if (pictures == 2) node = std::move(*node::Node::start(config));
  };
  EXPECT_EQ(run({"top"}), kOk);
  ASSERT_THAT(stage.pictures, SizeIs(3));
  EXPECT_THAT(stage.pictures[1].at(8).text, StartsWith("! cannot ask the node at " + address));
  EXPECT_EQ(stage.pictures[2].at(8).text, "");
}

TEST_F(TopCommand, FailsWhereThereIsNoNode) {
  EXPECT_EQ(tool.run({"top"}), kUsage);
  EXPECT_THAT(tool.err(), StartsWith("espalier: error: which node?"));
  for (const std::string bad : {"0", "-1", "nan", "inf", "-inf", "1e9", "0.01", "abc"}) {
    EXPECT_EQ(run({"top", "--interval", bad}), kUsage) << bad;
    EXPECT_THAT(tool.err(),
                HasSubstr("--interval: '" + bad + "' is not a number from 0.05 to 3600"));
  }
  for (const std::string bad : {"0", "-1", "4294967297"}) {
    EXPECT_EQ(run({"top", "--count", bad}), kUsage) << bad;
  }
  EXPECT_EQ(run({"top", "--interval", "0"}), kUsage);
  EXPECT_EQ(run({"top", "--once", "--count", "2"}), kUsage);
  EXPECT_EQ(run({"top", "--sort", "colour"}), kUsage);
  node.reset();
  play();
  EXPECT_EQ(run({"top"}), kFailed);
  EXPECT_THAT(tool.err(), HasSubstr("no node listens at " + address));
  EXPECT_THAT(stage.pictures, SizeIs(0)) << "an error belongs on the page that stays";
}

}  // namespace
}  // namespace espalier::tools
