// SPDX-License-Identifier: Apache-2.0
#include "regex/compiled_regex.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "kinds/table/testing/run_checks.hpp"
#include "regex/common_subset.hpp"
#include "regex/testing/random_regex.hpp"

namespace espalier::regex {
namespace {

bool found(std::string_view pattern, std::string_view text, bool ignore_case = false) {
  const auto regex = CompiledRegex::compile(pattern, {.ignore_case = ignore_case});
  EXPECT_TRUE(regex.has_value()) << pattern;
  std::uint8_t answer = 2;
  if (regex) (*regex)->search({&text, 1}, 0, &answer);
  return answer == 1;
}

std::string refusal(std::string_view pattern) {
  const auto regex = CompiledRegex::compile(pattern, {});
  return regex ? "" : regex.error();
}

TEST(CompiledRegex, SearchesAnywhereAndMeansWhatRe2Means) {
  EXPECT_TRUE(found("ca[rt]", "a cart"));
  EXPECT_FALSE(found("^ca[rt]", "a cart"));
  EXPECT_TRUE(found("cart$", "a cart"));
  EXPECT_FALSE(found("cart$", "a cart\n")) << "$ is the end, not before a last line end";
  EXPECT_TRUE(found("(?m)cart$", "a cart\n"));
  EXPECT_FALSE(found("a.b", "a\nb"));
  EXPECT_TRUE(found("(?s)a.b", "a\nb"));
  EXPECT_FALSE(found("\\s", "\v")) << "the vertical tab is no space";
  EXPECT_TRUE(found("^a.b$",
                    "a\xC3\xA9"
                    "b"))
      << "one code point";
  EXPECT_FALSE(found("^a.b$",
                     "a\xFF"
                     "b"))
      << "no code point";
  EXPECT_TRUE(found("stra\xC3\x9F",
                    "\xFFstra\xC3\x9F"
                    "e"));
  EXPECT_TRUE(found("STRASSE", "strasse", true));
  EXPECT_TRUE(found("k", "\xE2\x84\xAA", true)) << "the Kelvin sign";
  EXPECT_TRUE(found("", ""));
  EXPECT_TRUE(found("^$", ""));
  EXPECT_FALSE(found("x", ""));
  EXPECT_TRUE(found(std::string_view("a\\x00b"), std::string_view("xa\0b", 4)));
}

TEST(CompiledRegex, SaysWhereAPatternIsWrong) {
  EXPECT_EQ(refusal("ab(c"), "the regular expression is wrong at 1, 'ab(c': missing ): ab(c");
  EXPECT_EQ(refusal("x**"),
            "the regular expression is wrong at 2, '**': bad repetition operator: **");
  EXPECT_NE(refusal("(a)\\1"), "") << "nothing that needs backtracking";
  EXPECT_NE(refusal("(?=a)"), "");
  EXPECT_NE(refusal("\xFF"), "");
  EXPECT_EQ(refusal(std::string(1025, 'a')), "the regular expression has more than 1024 bytes");
  EXPECT_EQ(refusal(std::string(1024, 'a')), "");
}

TEST(CompiledRegex, HyperscanTakesWhatIsCommonAndNothingElse) {
  EXPECT_EQ(common_pattern("ab$", false)->text, "[\\x61][\\x62]\\z");
  EXPECT_FALSE(common_pattern("ab$", false)->ascii_only);
  EXPECT_TRUE(common_pattern("a.b", false)->ascii_only);
  EXPECT_TRUE(common_pattern("[^a]", false)->ascii_only);
  EXPECT_TRUE(common_pattern("k", true)->ascii_only);
  EXPECT_FALSE(common_pattern("a", true)->ascii_only);
  EXPECT_EQ(common_pattern("[a-c-e]", false), std::nullopt);
  for (const std::string_view other :
       {"(?m)^a", "\\pL", "(?P<n>a)", "a{,2}", "[[:alpha:]]", "\\C", "\\x{e9}", "(?i:a)", "^*"}) {
    EXPECT_FALSE(common_pattern(other, false).has_value()) << other;
  }
}

bool there_is_hyperscan() { return HyperscanPattern::compile("a").has_value(); }

TEST(CompiledRegexRandom, BothEnginesFindTheSame) {
  int refused = 0;
  int fast = 0;
  std::uint64_t matches = 0;
  base::Random random(1);
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> texts = {""};
    for (int i = 0; i < 12; ++i) texts.push_back(random_search_text(random, 1 + random.below(12)));
    if (round % 50 == 0) texts.push_back(random_search_text(random, 3000));
    const Compared compared =
        compare_engines(random_pattern(random), {.ignore_case = random.chance(0.3)}, texts);
    ASSERT_EQ(compared.difference, "");
    refused += compared.refused;
    fast += compared.hyperscan;
    matches += compared.found;
  }
  EXPECT_LT(refused, 2000);
  EXPECT_GT(matches, 4000u);
  if (there_is_hyperscan()) {
    EXPECT_GT(fast, 500);
  }
}

// Compiling is bounded, and so is searching: linear in the text, whatever the pattern.
TEST(CompiledRegex, HostilePatternsCostLittle) {
  std::string nested;
  for (int i = 0; i < 9; ++i) nested = "(" + nested + "a{2}){2}";
  std::string optional;
  for (int i = 0; i < 200; ++i) optional += "a?";
  std::string classes;
  for (int i = 0; i < 340; ++i) classes += "\\pL";
  std::string alternatives = "a";
  for (int i = 0; i < 100; ++i) alternatives += "|.*" + std::to_string(i);
  const std::vector<std::string> patterns = {"(a+)+$",
                                             "(a|a)*b",
                                             "(.*)(.*)(.*)(.*)(.*)b$",
                                             "(a{1,31}){31}",
                                             ".{1000}b",
                                             "(.{30}){33}x",
                                             nested,
                                             optional + std::string(200, 'a'),
                                             classes,
                                             alternatives,
                                             "(?i)" + std::string(1000, 'k'),
                                             std::string(500, '(') + std::string(500, ')'),
                                             "[^a]{0,300}[^b]{0,300}x",
                                             "(x+x+)+y",
                                             "(.*a){12}",
                                             "((a?){20}b){10}"};
  const std::string text = std::string(1023, 'a') + "!";
  for (const std::string& pattern : patterns) {
    const base::Stopwatch compiling;
    const auto regex = CompiledRegex::compile(pattern, {});
    EXPECT_LT(compiling.elapsed_ns(), 1'000'000'000u) << pattern;
    if (!regex) continue;
    const base::Stopwatch searching;
    const std::string_view view = text;
    std::uint8_t answer = 0;
    (*regex)->search({&view, 1}, 0, &answer);
    EXPECT_LT(searching.elapsed_ns(), 500'000'000u) << pattern;
  }
}

/// Fails a run where RE2 alone finds something else.
class Checked final : public table::RegexCompiler {
 public:
  class Both final : public table::Regex {
   public:
    Both(std::shared_ptr<const table::Regex> one, std::shared_ptr<const table::Regex> other)
        : one_(std::move(one)), other_(std::move(other)) {}
    void search(std::span<const std::string_view> texts, std::size_t,
                std::uint8_t* answers) const override {
      one_->search(texts, 0, answers);
      std::vector<std::uint8_t> others(texts.size());
      other_->search(texts, 0, others.data());
      EXPECT_TRUE(std::equal(others.begin(), others.end(), answers));
    }

   private:
    std::shared_ptr<const table::Regex> one_;
    std::shared_ptr<const table::Regex> other_;
  };

  std::expected<std::shared_ptr<const table::Regex>, std::string> compile(
      std::string_view pattern, table::RegexOptions options) override {
    auto one = CompiledRegex::compile(pattern, options);
    auto other = CompiledRegex::compile(pattern, options, Engines::re2_only);
    if (!one) return std::unexpected(one.error());
    ++compiled;
    return std::make_shared<Both>(*std::move(one), *std::move(other));
  }

  int compiled = 0;
};

TEST(CompiledRegexRandom, PipelinesWithThemRunAsTheReferenceRunsThem) {
  base::Random random(2);
  table::SeenInRuns seen;
  Checked compiler;
  EXPECT_EQ(table::difference_in_rounds(random, 150, seen, &compiler), "");
  EXPECT_GT(compiler.compiled, 20);
}

}  // namespace
}  // namespace espalier::regex
