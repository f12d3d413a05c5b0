// SPDX-License-Identifier: Apache-2.0
// Ids of text are read eight digits at a time: they are the same ones that a plain reading finds.
#include <gtest/gtest.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/random.hpp"
#include "kinds/embedding/model/id_text.hpp"
#include "kinds/embedding/model/model_queries.hpp"

namespace espalier::embedding {
namespace {

constexpr ModelShape kOneTable{0, 1, 8, 1};

/// The ids of one query whose text is this; nothing: some are refused.
std::optional<std::vector<std::uint32_t>> ids_in(const std::string& text) {
  const auto read = parse_queries(kOneTable, "|" + text);
  if (!read) return std::nullopt;
  return read->tables.front().ids;
}

/// The same of one word, as the standard reads it.
std::optional<std::vector<std::uint32_t>> plain_ids_in(const std::string& word) {
  std::uint32_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [behind, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || behind != end) return std::nullopt;
  return std::vector{value};
}

TEST(ModelQueries, IdsOfAnyLengthAreRead) {
  std::string text;
  std::vector<std::uint32_t> wanted;
  for (std::uint64_t id = 1; id <= 0xFFFF'FFFF; id = id * 10 + id % 9) {
    for (const std::uint64_t near : {id - 1, id, id + 1}) {
      wanted.push_back(static_cast<std::uint32_t>(near));
      text += " " + std::to_string(near) + (near % 2 == 0 ? "\t" : " ");
    }
  }
  EXPECT_EQ(ids_in(text), wanted);
  EXPECT_EQ(ids_in("4294967295 00000000004294967295 000000000000 7"),
            (std::vector<std::uint32_t>{0xFFFF'FFFF, 0xFFFF'FFFF, 0, 7}));
  std::vector<std::uint32_t> many;
  text.clear();
  for (std::uint32_t id = 0; id < 1000; ++id) {
    many.push_back(id * 40'013);
    text += std::to_string(many.back()) + " ";
  }
  EXPECT_EQ(ids_in(text), many);
}

// What is found 64 characters at a time is found across their borders, too.
TEST(ModelQueries, SpacedIdsAreReadWhereverTheyLie) {
  for (std::size_t before = 0; before < 140; ++before) {
    for (std::uint64_t id = 1; id <= 0xFFFF'FFFF; id = id * 10 + 2) {
      std::vector<std::uint32_t> found = {5};
      const std::string text = std::string(before, ' ') + std::to_string(id);
      ASSERT_TRUE(read_spaced_ids(text, found));
      ASSERT_TRUE(read_spaced_ids(text + " 7 ", found));
      const auto number = static_cast<std::uint32_t>(id);
      ASSERT_EQ(found, (std::vector<std::uint32_t>{5, number, number, 7})) << before;
    }
  }
  std::string text;
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t id = 0; id < 2000; ++id) {
    wanted.push_back(id % 150);
    text += (id % 7 == 0 ? "  " : " ") + std::to_string(id % 150);
  }
  std::vector<std::uint32_t> found;
  ASSERT_TRUE(read_spaced_ids(text, found));
  EXPECT_EQ(found, wanted);
  for (const char* const other : {"1\t2", "3 4294967296 4", "x", "1 2 3 4 5 6 7 8 :"}) {
    EXPECT_FALSE(read_spaced_ids(std::string(60, '1').replace(9, 1, " ") + other, found)) << other;
    EXPECT_FALSE(read_spaced_ids(other, found)) << other;
  }
  EXPECT_EQ(found, wanted) << "nothing is added of what is refused";
  EXPECT_TRUE(read_spaced_ids("", found));
}

// Words of digits and of what is next to them, before and behind other text.
TEST(ModelQueries, WordsAreIdsWhereAPlainReadingSaysSo) {
  const std::uint64_t seed = base::seed_from_environment(43);
  base::Random random(seed);
  constexpr std::string_view kOthers = "/:-+.x\x80\xff\n";
  int ids = 0;
  int others = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string word;
    for (std::uint64_t left = random.below(12); left != 0; --left) {
      word += static_cast<char>('0' + random.below(10));
    }
    if (random.below(4) == 0) {
      const char other = kOthers[random.below(kOthers.size() - 1)];
      word.insert(random.below(word.size() + 1), 1, other);
    }
    if (word.empty()) continue;
    const auto wanted = plain_ids_in(word);
    (wanted ? ids : others) += 1;
    EXPECT_EQ(ids_in(word), wanted) << word << ", seed " << seed;
    auto two = wanted;
    if (two) two->push_back(12'345'678);
    EXPECT_EQ(ids_in(word + " 12345678"), two) << word << ", seed " << seed;
  }
  EXPECT_GT(ids, 100);
  EXPECT_GT(others, 100);
}

}  // namespace
}  // namespace espalier::embedding
