// SPDX-License-Identifier: Apache-2.0
// Files of query lists and groups: each format, and what is wrong with one.
#include "tools/query_list_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "tools/number_lines.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using Ids = std::vector<std::uint32_t>;

std::expected<QueryFile, std::string> read(const std::string& text, QueryFormat format,
                                           std::uint64_t rows = 10, std::size_t piece = 3) {
  MemorySource source(text, piece);
  return read_query_lists(source, format, rows);
}

std::string fault(const std::string& text, QueryFormat format, std::uint64_t rows = 10) {
  const auto found = read(text, format, rows);
  return found ? "" : found.error();
}

std::vector<Ids> lists_in(const QueryFile& file) {
  std::vector<Ids> all;
  for (std::size_t i = 0; i < file.lists.size(); ++i) {
    all.emplace_back(file.lists.list(i).begin(), file.lists.list(i).end());
  }
  return all;
}

TEST(QueryListFiles, PlainLists) {
  const auto file = read("0 9 3\r\n\n\t5,5\n7", QueryFormat::lists);
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(lists_in(*file), (std::vector<Ids>{{0, 9, 3}, {5, 5}, {7}}));
  EXPECT_EQ(file->lists.weight(0), 1u);
  EXPECT_EQ(read("", QueryFormat::lists)->lists.size(), 0u);
  EXPECT_EQ(fault("1\n2 10\n", QueryFormat::lists), "line 2: 10 is no id of the table's 10 rows");
  EXPECT_EQ(fault("-1\n", QueryFormat::lists), "line 1: -1 is no id of the table's 10 rows");
  EXPECT_EQ(fault("1 x\n", QueryFormat::lists), "line 1: there is something that is no number");
  EXPECT_EQ(fault("1 --1\n", QueryFormat::lists), "line 1: there is something that is no number");
  EXPECT_EQ(fault("1 # 2\n", QueryFormat::lists), "line 1: there is a '#' in place of an id");
  EXPECT_EQ(fault("99999999999999999999999\n", QueryFormat::lists),
            "line 1: a number is too large");
}

TEST(QueryListFiles, MercisTrainAndTest) {
  const auto train = read("1 10 2 5 2\n30 1 2 10\n4 5 5\n", QueryFormat::merci);
  ASSERT_TRUE(train) << train.error();
  EXPECT_EQ(lists_in(*train), (std::vector<Ids>{{0, 1, 9}, {4, 4}}));
  EXPECT_EQ(train->lists.weight(0), 30u);
  EXPECT_EQ(train->lists.weight(1), 4u);
  const auto test = read("# 10\n7 1\n", QueryFormat::merci);
  ASSERT_TRUE(test) << test.error();
  EXPECT_EQ(lists_in(*test), (std::vector<Ids>{{0}}));
  EXPECT_EQ(test->lists.weight(0), 7u);
  EXPECT_EQ(fault("1 10 2 5 2\n30 1 2\n", QueryFormat::merci),
            "there are 1 lists of 2 ids, not as many as the first line says");
  EXPECT_EQ(fault("1 11 0 0 2\n", QueryFormat::merci),
            "line 1: the file is of 11 items, and the table has 10 rows");
  EXPECT_EQ(fault("# 10\n7 0\n", QueryFormat::merci), "line 2: 0 is no id of the table's 10 rows");
  EXPECT_EQ(fault("# 10\n0 1\n", QueryFormat::merci), "line 2: a weight is 1 to 2^32 - 1");
  EXPECT_EQ(fault("3 4 5\n", QueryFormat::merci), "line 1: this is no file of MERCI's");
  EXPECT_EQ(fault("", QueryFormat::merci), "line 1: this is no file of MERCI's");
}

TEST(QueryListFiles, MercisEvaluation) {
  const auto file =
      read("# 10 14 # 4\n0 1 0\n2 2 2\n6 3 4\n9 -1 -1\n0 2 3 9\n8 8\n", QueryFormat::merci);
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->groups.sizes, (std::vector<std::uint8_t>{2, 2, 3}));
  EXPECT_EQ(file->groups.rows, (Ids{2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(lists_in(*file), (std::vector<Ids>{{0, 2, 3, 9}, {8, 8}}));
  const auto remapped = read("# 2 0 1 9\n9 -1 -1\n4 5\n", QueryFormat::merci);
  ASSERT_TRUE(remapped) << remapped.error();
  EXPECT_TRUE(remapped->groups.sizes.empty());
  EXPECT_EQ(lists_in(*remapped), (std::vector<Ids>{{4, 5}}));
  const auto of = [](const std::string& classes) {
    return fault("# 10 14 # 4\n" + classes, QueryFormat::merci);
  };
  EXPECT_EQ(of("0 2 0\n5 -1 -1\n"), "line 3: the class before has no whole clusters");
  EXPECT_EQ(of("4 2 0\n2 -1 -1\n"), "line 3: the class before has no whole clusters");
  EXPECT_EQ(of("0 9 0\n"),
            "line 2: clusters have 1 to 8 rows here: give the lists to train with, of which groups "
            "are made");
  EXPECT_EQ(of("0 2 0\n4000000000 -1 -1\n"), "line 3: 4000000000 is no id of the table's 10 rows");
  EXPECT_EQ(of("0 2\n"), "line 2: a class has three numbers");
  EXPECT_EQ(of("0 2 0\n"), "line 3: a class has three numbers");
}

TEST(QueryListFiles, Groups) {
  const auto read_them = [](const std::string& text) {
    MemorySource source(text, 2);
    return read_groups(source, 10);
  };
  const auto groups = read_them("1 2\n\n9 8 7\n");
  ASSERT_TRUE(groups) << groups.error();
  EXPECT_EQ(groups->sizes, (std::vector<std::uint8_t>{2, 3}));
  EXPECT_EQ(groups->rows, (Ids{1, 2, 9, 8, 7}));
  EXPECT_EQ(read_them("1\n").error(), "line 1: a group has 2 to 8 rows");
  EXPECT_EQ(read_them("1 2\n0 1 2 3 4 5 6 7 8\n").error(), "line 2: a group has 2 to 8 rows");
  EXPECT_EQ(read_them("1 10\n").error(),
            "line 1: there is an id that is none of the table's 10 rows");
  EXPECT_EQ(read_them("1 #\n").error(),
            "line 1: there is an id that is none of the table's 10 rows");
  EXPECT_EQ(read_them("1 2\n3 1\n").error(), "id 1 at place 3 is in a group already");
}

TEST(QueryListFiles, Partitions) {
  const auto read_them = [](const std::string& text, std::uint64_t rows = 5) {
    MemorySource source(text, 2);
    return read_partition(source, rows);
  };
  const auto parts = read_them("0\n3\n0 1\n");
  ASSERT_TRUE(parts) << parts.error();
  EXPECT_EQ(parts->of_item, (Ids{0, 3, 0, 1, embedding::Communities::kNone}));
  EXPECT_EQ(parts->count, 4u);
  EXPECT_EQ(read_them("0 0 0 0 0\n0\n").error(),
            "line 2: there are more items than rows of the table");
  EXPECT_EQ(read_them("5\n").error(),
            "line 1: a part has a number of 0 to one below the table's rows");
  std::string many;
  for (int i = 0; i < 129; ++i) many += "7 ";
  EXPECT_EQ(read_them(many, 1000).error(), "line 1: part 7 has more than 128 items");
}

// Bytes of numbers, marks and line ends in any order: an error in words, or ids that are rows.
TEST(QueryListFiles, AnyBytesAreRefusedOrRead) {
  base::Random random(21);
  constexpr std::string_view kBytes = "0123456789 \n\t,#-\r";
  for (int round = 0; round < 3000; ++round) {
    std::string text =
        std::vector<std::string>{"", "# 10\n", "1 9 1 1 2\n", "# 9 9 # 2\n"}[random.below(4)];
    for (std::uint64_t left = random.below(60); left != 0; --left) {
      text += random.below(200) == 0 ? static_cast<char>(random.below(256))
                                     : kBytes[random.below(kBytes.size())];
    }
    for (const QueryFormat format : {QueryFormat::lists, QueryFormat::merci}) {
      const auto file = read(text, format, 10, 1 + random.below(7));
      if (!file) {
        EXPECT_FALSE(file.error().empty());
        continue;
      }
      for (const std::uint32_t id : file->lists.ids()) EXPECT_LT(id, 10u);
      for (const std::uint32_t row : file->groups.rows) EXPECT_LT(row, 10u);
    }
    MemorySource groups(text, 5);
    static_cast<void>(read_groups(groups, 10));
    MemorySource parts(text, 5);
    static_cast<void>(read_partition(parts, 10));
  }
}

}  // namespace
}  // namespace espalier::tools
