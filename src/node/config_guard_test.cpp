// SPDX-License-Identifier: Apache-2.0
#include "node/config_guard.hpp"

#include <gtest/gtest.h>

#include "node/config_file.hpp"

namespace espalier::node {
namespace {

/// The string that the parser finds behind "a = ".
std::string value_of(const std::string& toml) {
  const FileContent content = read_toml("a = " + toml);
  if (content.loose.size() != 1) return "no value: " + content.problems.at(0).what;
  return std::get<std::string>(content.loose[0].raw);
}

TEST(ConfigGuard, AsciiPassesAsItIs) {
  for (const char* text :
       {"", "a = 1\r\n", "a = \"\"", "a = \"\"\"\"\"\"", "a = \"x\\\"#'\" # \"", "a = '\"\\' # '",
        "a = '''x'y''\n'''''\n", "a = \"\"\"x\\\n \"\"\"\"\""}) {
    EXPECT_EQ(guard_toml(text), std::string(text));
  }
}

TEST(ConfigGuard, OtherCharactersComeThroughStrings) {
  EXPECT_EQ(value_of("\"k\u00e4se \u20ac \U0001f333\""), "k\u00e4se \u20ac \U0001f333");
  EXPECT_EQ(value_of("'k\u00e4se \U0001f333'"), "k\u00e4se \U0001f333");
  EXPECT_EQ(value_of("\"\"\"\\\n  \u00e9\n\u3000\"\"\"\"\""), "\u00e9\n\u3000\"\"");
  EXPECT_EQ(value_of("\"\"\"\\\n  \ufefb\"\"\""), "\ufefb");
  EXPECT_EQ(value_of("'''\u00e9'''"), "\u00e9");
  EXPECT_EQ(value_of("\"\" # \u00e4 \u2028 \ufefb"), "");
  EXPECT_EQ(read_toml("\xef\xbb\xbf\"\u00e4\" = 1").loose.at(0).key, "\u00e4");
}

TEST(ConfigGuard, OtherCharactersElsewhereAreRefused) {
  for (const char* wrong : {"\u00e4 = 1", "a = \u00e4", "a\u00a0= 1", "\ufefb", "a = \"\" \u3000",
                            "a = \"\\\u00e4\"", "a = \"\"\"\\\u00e4\"\"\"", "[\u00e4]"}) {
    const auto guarded = guard_toml(std::string("# one\n") + wrong);
    ASSERT_FALSE(guarded.has_value()) << wrong;
    EXPECT_EQ(guarded.error().line, 2u);
  }
}

TEST(ConfigGuard, WhatCannotBeTomlIsRefusedWithItsLine) {
  for (const char* wrong : {"\xff", "# \xc3", "a = \"\xed\xa0\x80\"", "a = \"\n\"", "a = '\n'",
                            "a = \"\\\n\"", "a = \"\\"}) {
    const auto guarded = guard_toml(std::string("a = \"\"\"\n\"\"\"\n") + wrong);
    ASSERT_FALSE(guarded.has_value()) << wrong;
    EXPECT_EQ(guarded.error().line, 3u);
  }
}

TEST(ConfigGuard, OnlyDotsThatCanNestCount) {
  const std::string dots(10'000, '.');
  for (const std::string& text : {"# " + dots, "a = '" + dots + "'", "a = \"" + dots + "\""}) {
    EXPECT_TRUE(guard_toml(text).has_value());
  }
  EXPECT_TRUE(guard_toml(std::string(kDotsMax, '.')).has_value());
  EXPECT_FALSE(guard_toml(std::string(kDotsMax + 1, '.')).has_value());
}

}  // namespace
}  // namespace espalier::node
