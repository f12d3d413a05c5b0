// SPDX-License-Identifier: Apache-2.0
#include "dataplane/table_text.hpp"

#include <gtest/gtest.h>

#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

TEST(TableText, TablesComeBackRandom) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 100; ++round) {
    const TreeImage tree = random_tree(random, {.levels = 3, .children_max = 20, .here = 0.1});
    const IndexTables tables =
        compile(tree, {.ranges = 1 + random.below(50), .sets = random.below(3), .nodes_per_set = 9})
            .tables;
    const auto parsed = parse_tables(to_text(tables));
    ASSERT_TRUE(parsed) << parsed.error().line << ": " << parsed.error().reason;
    ASSERT_EQ(*parsed, tables);
  }
}

TEST(TableText, PeopleCanWriteIt) {
  const auto parsed = parse_tables(
      "# two ranges, and a node below the second\n"
      "espalier-tables 1\n"
      "\n"
      "root 8 1 1\n"
      "range 0 0 0 127 0\n"
      "way 40\n"
      "way 80>0\r\n"
      "set\n"
      "node c0 a0 100\n");
  ASSERT_TRUE(parsed) << parsed.error().line << ": " << parsed.error().reason;
  EXPECT_EQ(find(*parsed, 5), (Found{0x40, 0}));
  EXPECT_EQ(find(*parsed, 0x9F), (Found{0xC0, 1}));
  EXPECT_EQ(find(*parsed, 0xA0), (Found{0x100, 1}));
}

TEST(TableText, AFaultNamesItsLine) {
  const auto fault = [](std::string_view body) {
    const auto parsed = parse_tables("espalier-tables 1\n" + std::string(body));
    return parsed ? std::string("taken")
                  : std::to_string(parsed.error().line) + ": " + parsed.error().reason;
  };
  EXPECT_EQ(fault(""), "0: there is no line 'root'");
  EXPECT_EQ(fault("root 16 4 0\nroot 16 4 0\n"), "3: there are two lines 'root'");
  EXPECT_EQ(fault("root 16 65 0\n"), "2: there are 1 to 64 stages");
  EXPECT_EQ(fault("root 16 4\n"), "2: wanted: root BITS STAGES PRESET");
  EXPECT_EQ(fault("root 16 4 0\nrange 4 0 0 1 0\n"), "3: there is no such stage");
  EXPECT_EQ(fault("root 16 4 0\nrange 0 0 0 65536 0\n"),
            "3: wanted: range STAGE TABLE FIRST LAST RESULT [NEXT]");
  EXPECT_EQ(fault("root 16 4 0\nway 12345678901234567\n"), "3: wanted: way ADDRESS[>NODE]");
  EXPECT_EQ(fault("root 16 4 0\nway 1>\n"), "3: wanted: way ADDRESS[>NODE]");
  EXPECT_EQ(fault("root 16 4 0\nway -1\n"), "3: wanted: way ADDRESS[>NODE]");
  EXPECT_EQ(fault("root 16 4 0\nway 1 2\n"), "3: there are words too many");
  EXPECT_EQ(fault("root 16 4 0\nnode 1\n"), "3: there is no line 'set' before it");
  EXPECT_EQ(fault("root 16 4 0\nset\nnode 1 2\n"), "4: wanted: node WAY [PIVOT WAY]...");
  EXPECT_EQ(fault("root 16 4 0\nways 1\n"), "3: this line begins with no word that is known");
  EXPECT_EQ(fault("root 16 4 0\nway 1>0\n"),
            "0: an entry leads to what does not exist, or entries or pivots are out of order");
  std::string wide = "root 16 4 0\nway 1\nset\nnode 0";
  for (int i = 1; i <= 16; ++i) wide += " " + std::to_string(i) + " 0";
  EXPECT_EQ(fault(wide), "5: a node has at most 16 ways");
  EXPECT_EQ(parse_tables("espalier-tables 2\n").error().line, 1u);
  EXPECT_EQ(parse_tables("").error().reason, "the text does not begin with 'espalier-tables 1'");
}

}  // namespace
}  // namespace espalier::dataplane
