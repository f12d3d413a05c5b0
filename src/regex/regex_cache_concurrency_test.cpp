// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "regex/regex_cache.hpp"

namespace espalier::regex {
namespace {

bool found(const table::Regex& regex, std::string_view text) {
  std::uint8_t answer = 0;
  regex.search({&text, 1}, 0, &answer);
  return answer == 1;
}

TEST(RegexCache, KeepsThePatternsUsedLast) {
  RegexCache cache;
  const auto first = cache.compile("first", {});
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(cache.compile("first", {}).value(), *first);
  EXPECT_NE(cache.compile("first", {.ignore_case = true}).value(), *first);
  for (std::size_t i = 0; i < 2 * RegexCache::kPatternsMax; ++i) {
    ASSERT_TRUE(cache.compile("x" + std::to_string(i), {}).has_value());
    if (i == RegexCache::kPatternsMax / 2) {
      EXPECT_EQ(cache.compile("first", {}).value(), *first);
    }
  }
  EXPECT_EQ(cache.numbers().patterns, RegexCache::kPatternsMax);
  EXPECT_NE(cache.compile("first", {}).value(), *first) << "it was dropped";
  EXPECT_TRUE(found(**first, "the first one")) << "and lives on here";
  const auto numbers = cache.numbers();
  EXPECT_FALSE(cache.compile("(", {}).has_value());
  EXPECT_EQ(cache.numbers().patterns, numbers.patterns) << "what is wrong is not kept";
}

TEST(RegexCacheConcurrency, ThreadsShareIt) {
  RegexCache cache;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      base::Random random(seed);
      for (int i = 0; i < 400; ++i) {
        const std::string number = std::to_string(random.below(random.chance(0.7) ? 8 : 500));
        const auto regex = cache.compile("^a" + number + "$", {});
        if (!regex || !found(**regex, "a" + number) || found(**regex, "b" + number)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.numbers().patterns, RegexCache::kPatternsMax);
  EXPECT_GT(cache.numbers().hits, 100u);
}

}  // namespace
}  // namespace espalier::regex
