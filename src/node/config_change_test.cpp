// SPDX-License-Identifier: Apache-2.0
#include "node/config_change.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "node/config_settings.hpp"

namespace espalier::node {
namespace {

Config small_config() {
  Config config;
  config.node.socket = "/s";
  config.memory.limit = std::uint64_t{1} << 30;
  return config;
}

TEST(ConfigChange, NothingDiffersFromItself) {
  const ConfigChanges none = changes(small_config(), small_config());
  EXPECT_TRUE(none.settings.empty());
  EXPECT_TRUE(none.maps.empty());
}

TEST(ConfigChange, SettingsAreToldAsAFileHasThem) {
  Config wanted = small_config();
  wanted.node.cores = 4;
  wanted.log.level = LogLevel::debug;
  wanted.memory.limit = std::uint64_t{2} << 30;
  const auto found = changes(small_config(), wanted).settings;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].key, "node.cores");
  EXPECT_EQ(found[0].after, "4");
  EXPECT_FALSE(found[0].live);
  EXPECT_EQ(found[1].before, "\"1GiB\"");
  EXPECT_EQ(found[1].after, "\"2GiB\"");
  EXPECT_EQ(found[2].key, "log.level");
  EXPECT_EQ(found[2].before, "\"info\"");
  EXPECT_TRUE(found[2].live);
}

TEST(ConfigChange, MapsThatComeGoAndDiffer) {
  Config running = small_config();
  running.maps = {{"a", {}}, {"b", {}}, {"c", {}}};
  Config wanted = small_config();
  wanted.maps = {{"d", {}}, {"c", {}}, {"b", {}}};
  wanted.maps[2].options.versions = false;
  const auto found = changes(running, wanted).maps;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[0].kind, MapChange::Kind::removed);
  EXPECT_EQ(found[1].name, "b");
  EXPECT_EQ(found[1].kind, MapChange::Kind::other_options);
  EXPECT_EQ(found[2].name, "d");
  EXPECT_EQ(found[2].kind, MapChange::Kind::added);
}

TEST(ConfigChange, PeersTakeARestart) {
  Config wanted = small_config();
  wanted.peers = {{"b", "shm:/x", ""}, {"c", "shm:/y", "/s"}};
  const ConfigChanges found = changes(small_config(), wanted);
  ASSERT_EQ(found.settings.size(), 1u);
  EXPECT_EQ(found.settings[0].key, "peers");
  EXPECT_EQ(found.settings[0].before, "\"\"");
  EXPECT_EQ(found.settings[0].after, "\"b=shm:/x,c=shm:/y /s\"");
  EXPECT_FALSE(found.settings[0].live);
  EXPECT_TRUE(with_live_settings(small_config(), wanted).peers.empty());
}

TEST(ConfigChange, OnlyLiveSettingsAreTaken) {
  Config wanted = small_config();
  wanted.node.socket = "/t";
  wanted.node.socket_mode = 0666;
  wanted.node.cores = 4;
  wanted.metrics.port = 4711;
  wanted.maps.clear();
  Config expected = small_config();
  expected.node.socket_mode = 0666;
  expected.metrics.port = 4711;
  EXPECT_EQ(with_live_settings(small_config(), wanted), expected);
}

TEST(ConfigChange, TheDocumentNamesWhatIsLive) {
  std::ifstream in(std::filesystem::path(ESPALIER_SOURCE_DIR) / "docs/configuration.md");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = text.find("## Changing a running node");
  ASSERT_NE(begin, std::string::npos);
  const std::string chapter = text.substr(begin, text.find("\n## ", begin) - begin);
  for (const Setting& setting : settings()) {
    const bool named = chapter.contains("`" + std::string(setting.key) + "`");
    EXPECT_EQ(named, setting.live) << setting.key;
  }
}

}  // namespace
}  // namespace espalier::node
