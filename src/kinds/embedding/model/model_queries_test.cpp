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
