// SPDX-License-Identifier: Apache-2.0
#include "node/config_file.hpp"

#include <gtest/gtest.h>

namespace espalier::node {
namespace {

TEST(ConfigFile, ReadsSectionsMapsAndLines) {
  const FileContent content = read_toml(
      "# first\n"
      "log.level = \"warn\"\n"
      "stray = 1\n"
      "[node]\n"
      "pin = true\n"
      "cores = 2\n"
      "[[map]]\n"
      "name = \"a\"\n"
      "[[map]]\n"
      "name = \"b\"\n"
      "node_bytes = 4096\n");
  EXPECT_TRUE(content.problems.empty());
  ASSERT_EQ(content.loose.size(), 1u);
  EXPECT_EQ(content.loose[0].key, "stray");
  EXPECT_EQ(content.loose[0].line, 3u);
  ASSERT_EQ(content.sections.size(), 2u);
  EXPECT_EQ(content.sections[0].name, "log");
  EXPECT_EQ(content.sections[0].entries[0].line, 2u);
  EXPECT_EQ(content.sections[1].line, 4u);
  ASSERT_EQ(content.sections[1].entries.size(), 2u);
  EXPECT_EQ(content.sections[1].entries[0].key, "pin");
  EXPECT_EQ(std::get<std::int64_t>(content.sections[1].entries[1].raw), 2);
  ASSERT_EQ(content.maps.size(), 2u);
  EXPECT_EQ(content.maps[1].line, 9u);
  EXPECT_EQ(content.maps[1].entries[1].line, 11u);
}

TEST(ConfigFile, TextThatIsNoTomlGivesTheLine) {
  for (const char* wrong : {"a = 1\nb = \n", "a = 1\na = 2\n", "[node]\n[node]\n", "a = 1\n\xff\n",
                            "a = 1\nb = \"\n\"\n"}) {
    const FileContent content = read_toml(wrong);
    ASSERT_EQ(content.problems.size(), 1u) << wrong;
    EXPECT_EQ(content.problems[0].line, 2u) << wrong << content.problems[0].what;
  }
}

// Each of these breaks an assertion of the parser.
TEST(ConfigFile, WhatTheParserGivesUpAtIsRefusedWithItsLine) {
  for (const char* wrong : {"[!]", "[\x0e]", "[[?]]", "[  =]"}) {
    for (const char* rest : {"", "\n", "\n[node]\ncores = \"\"\"\n\"\"\"\n"}) {
      const std::string text = std::string("a = \"\"\"\n\"\"\"\n") + wrong + rest;
      const FileContent content = read_toml(text);
      ASSERT_EQ(content.problems.size(), 1u) << text;
      EXPECT_EQ(content.problems[0].line, 3u) << text << content.problems[0].what;
    }
  }
}

TEST(ConfigFile, AMapIsAnArrayOfTables) {
  for (const char* wrong : {"map = 1", "map = []", "map = [1]", "map = [[]]", "[map]\nname='a'",
                            "map = [{name='a'}, 'b']"}) {
    EXPECT_EQ(read_toml(wrong).problems.size(), 1u) << wrong;
  }
  EXPECT_EQ(read_toml("map = [{name='a'}, {name='b'}]").maps.size(), 2u);
}

TEST(ConfigFile, DepthIsBounded) {
  const auto dotted = [](std::size_t dots) {
    std::string text;
    for (std::size_t i = 0; i < dots; ++i) text += "a.";
    return text + "a";
  };
  EXPECT_TRUE(read_toml(dotted(1000) + " = 1").problems.empty());
  EXPECT_TRUE(read_toml("[" + dotted(500) + "]\n" + dotted(500) + " = 1").problems.empty());
  EXPECT_EQ(read_toml(dotted(1001) + " = 1").problems.size(), 1u);
  EXPECT_EQ(read_toml(dotted(100'000) + " = 1").problems.size(), 1u);
  EXPECT_EQ(read_toml("a = " + std::string(100'000, '[')).problems.size(), 1u);
  EXPECT_EQ(
      read_toml("a = " + std::string(100'000, '[') + std::string(100'000, ']')).problems.size(),
      1u);
  std::string tables = "a = ";
  for (int i = 0; i < 20'000; ++i) tables += "{a=";
  EXPECT_EQ(read_toml(tables).problems.size(), 1u);
  // Sentences in comments have dots, and are no keys.
  EXPECT_TRUE(read_toml("# " + dotted(10'000) + "\n").problems.empty());
}

TEST(ConfigFile, LengthIsBounded) {
  EXPECT_TRUE(read_toml(std::string(kFileBytesMax, ' ')).problems.empty());
  EXPECT_EQ(read_toml(std::string(kFileBytesMax + 1, ' ')).problems.size(), 1u);
}

}  // namespace
}  // namespace espalier::node
