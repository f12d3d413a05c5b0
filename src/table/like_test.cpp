// SPDX-License-Identifier: Apache-2.0
#include "table/like.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>

#include "base/random.hpp"

namespace espalier::table {
namespace {

/// By the definition: every way in which a pattern may be taken.
bool is_like_slowly(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '%') {
    if (is_like_slowly(text, pattern.substr(1))) return true;
    return !text.empty() && is_like_slowly(text.substr(code_point_bytes(text)), pattern);
  }
  if (text.empty()) return false;
  if (pattern[0] == '_') {
    return is_like_slowly(text.substr(code_point_bytes(text)), pattern.substr(1));
  }
  const std::size_t literal = pattern[0] == '\\' ? 1 : 0;
  return pattern[literal] == text[0] && is_like_slowly(text.substr(1), pattern.substr(literal + 1));
}

TEST(Like, MatchesWhatItShould) {
  for (const auto& [text, pattern, like] :
       std::initializer_list<std::tuple<std::string_view, std::string_view, bool>>{
           {"", "", true},
           {"", "%", true},
           {"a", "", false},
           {"abc", "abc", true},
           {"abc", "a%", true},
           {"abc", "%c", true},
           {"abc", "%b%", true},
           {"abc", "a_c", true},
           {"abc", "a__c", false},
           {"aXbXc", "a%X%c", true},
           {"ab", "a%ab", false},
           {"aab", "%ab", true},
           {"\xC3\xA9", "_", true},
           {"\xC3\xA9", "__", false},
           {"\xE2\x82\xAC", "%__", false},
           {"\xE2\x82\xAC"
            "x",
            "_x", true},
           {"10%", "10\\%", true},
           {"10x", "10\\%", false},
           {"a_b", "a\\_b", true},
           {"axb", "a\\_b", false},
           {"a\\b", "a\\\\b", true}}) {
    EXPECT_EQ(is_like(text, pattern), like) << text << " like " << pattern;
    EXPECT_EQ(LikePattern(pattern).matches(text), like) << text << " like " << pattern;
  }
}

TEST(Like, RefusesPatternsThatAreNone) {
  EXPECT_EQ(wrong_with_pattern("a%\xC3\xA9_"), nullptr);
  EXPECT_STREQ(wrong_with_pattern("a\\"), "the pattern ends with a backslash");
  EXPECT_EQ(wrong_with_pattern("a\\\\"), nullptr);
  for (const char* bad : {"\x80", "\xC3",
                          "\xC3"
                          "a",
                          "\xF8\x80\x80\x80"}) {
    EXPECT_STREQ(wrong_with_pattern(bad), "the pattern is not UTF-8") << bad;
  }
}

TEST(Like, AllFormsAgreeOnRandomTexts) {
  base::Random random(base::seed_from_environment(7));
  constexpr std::string_view kTexts[] = {"a", "b",  "\xC3\xA9", "\xE2\x82\xAC", "%",
                                         "_", "\\", "\x82",     "\xE2"};
  constexpr std::string_view kPatterns[] = {"a", "b", "\xC3\xA9", "\xE2\x82\xAC", "%",
                                            "_", "%", "\\%",      "\\\\"};
  int likes = 0;
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    std::string pattern;
    for (std::uint64_t n = random.below(8); n-- > 0;) text += kTexts[random.below(9)];
    for (std::uint64_t n = random.below(7); n-- > 0;) pattern += kPatterns[random.below(9)];
    ASSERT_EQ(wrong_with_pattern(pattern), nullptr) << pattern;
    const bool like = is_like_slowly(text, pattern);
    likes += like ? 1 : 0;
    ASSERT_EQ(is_like(text, pattern), like) << text << " like " << pattern;
    ASSERT_EQ(LikePattern(pattern).matches(text), like) << text << " like " << pattern;
  }
  EXPECT_GT(likes, 1000);
}

}  // namespace
}  // namespace espalier::table
