// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/like.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/cpu_clock.hpp"
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

// Segments of more code points than a word has bits, over few symbols, so that many nearly match.
TEST(Like, LongSegmentsAgreeWithTheOracle) {
  base::Random random(base::seed_from_environment(8));
  constexpr std::string_view kSymbols[] = {"a", "b", "\xC3\xA9", "\xE2\x82\xAC"};
  int likes = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string_view> text;
    for (std::uint64_t n = random.below(300); n-- > 0;) {
      text.push_back(random.below(60) == 0 ? "\x82" : kSymbols[random.below(4)]);
    }
    // Pieces of the text, some of whose symbols any may stand for.
    std::string pattern = random.below(2) == 0 ? "%" : "";
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min<std::size_t>(text.size(), at + random.below(200));
      for (; at < end; ++at) {
        const bool any = text[at] == "\x82" || random.below(3) == 0;
        pattern += any ? "_" : text[at];
      }
      if (random.below(3) != 0) pattern += "%";
      at += pattern.ends_with('%') ? random.below(5) : 0;
    }
    if (random.below(4) == 0) pattern += "a";
    std::string whole;
    for (const std::string_view symbol : text) whole += symbol;
    const bool like = is_like(whole, pattern);
    likes += like ? 1 : 0;
    ASSERT_EQ(LikePattern(pattern).matches(whole), like) << whole << " like " << pattern;
  }
  EXPECT_GT(likes, 1000);
  EXPECT_LT(likes, 2900);
}

// By processor time, against that of reading the same text by code points: an implementation that
// restarts at each position takes some hundred times as long.
TEST(Like, TextsTakeATimeInProportionToTheirLength) {
  std::string text(1000, 'a');
  const auto best_of = [](const auto& work) {
    std::uint64_t best = ~std::uint64_t{0};
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t began_ns = base::thread_cpu_ns();
      work();
      best = std::min(best, base::thread_cpu_ns() - began_ns);
    }
    return best;
  };
  std::size_t taken = 0;
  const std::uint64_t once_ns = best_of([&] {
    for (int i = 0; i < 20; ++i) {
      for (std::string_view left = text; !left.empty(); ++taken) {
        left.remove_prefix(code_point_bytes(left));
      }
    }
  });
  ASSERT_EQ(taken, 20u * 20 * 1000);
  const std::string any(500, '_');
  const std::string pairs = [] {
    std::string made;
    for (int i = 0; i < 100; ++i) made += "a_";
    return made;
  }();
  for (const std::string& pattern :
       {"%" + std::string(500, 'a') + "b%", "%" + any + "b%", "%" + any + "%" + any + "b",
        "%a" + any + "b%", "%" + pairs + "b%", "%a%a%a%" + any + "_b_%"}) {
    const LikePattern like(pattern);
    bool found = false;
    const std::uint64_t like_ns = best_of([&] {
      for (int i = 0; i < 20; ++i) found = found || like.matches(text);
    });
    EXPECT_FALSE(found);
    EXPECT_LE(like_ns, 15 * once_ns) << pattern;
  }
}

}  // namespace
}  // namespace espalier::table
