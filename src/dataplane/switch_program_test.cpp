// SPDX-License-Identifier: Apache-2.0
#include "dataplane/switch_program.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

SwitchProgram random_program(base::Random& random) {
  SwitchProgram program;
  for (std::uint32_t map = 0; map < 3; ++map) {
    const TreeImage tree = random_tree(random, {});
    EXPECT_TRUE(
        program.add({{map + 7, map + 100}, compile(tree, {.ranges = 8, .sets = 2}).tables}));
  }
  return program;
}

TEST(SwitchProgram, ComesBackFromItsText) {
  base::Random random(base::seed_from_environment(4));
  const SwitchProgram program = random_program(random);
  const auto again = SwitchProgram::parse(program.text());
  ASSERT_TRUE(again) << again.error().line << again.error().reason;
  EXPECT_EQ(*again, program);
  EXPECT_EQ(SwitchProgram::parse("# none\nespalier-switch 1\n")->maps().size(), 0u);
}

// Of one map at two nodes both are there, and each changes by itself.
TEST(SwitchProgram, AMapMayLieOnSeveralNodes) {
  base::Random random(base::seed_from_environment(6));
  SwitchProgram program;
  for (std::uint16_t node = 0; node < 2; ++node) {
    const auto tables = compile(random_tree(random, {}), {.ranges = 8, .sets = 1}).tables;
    ASSERT_TRUE(program.add({{7, 100u + node, node}, tables}));
    EXPECT_FALSE(program.add({{7, 9, node}, tables}));
  }
  EXPECT_EQ(*SwitchProgram::parse(program.text()), program);
  const auto changes = program.parse_changes("change 7 way 0 abc0\nchange 7 node 1 way 0 fff40\n");
  ASSERT_TRUE(changes) << changes.error().reason;
  EXPECT_EQ(*program.parse_changes(to_text(*changes)), *changes);
  program.make(*changes);
  EXPECT_EQ(program.maps()[0].tables.ways[0].address, 0xABC0u);
  EXPECT_EQ(program.maps()[1].tables.ways[0].address, 0xFFF40u);
  EXPECT_FALSE(program.parse_changes("change 7 node 2 way 0 abc0\n"));
  EXPECT_FALSE(program.parse_changes("change 7 node x way 0 abc0\n"));
  program.remove({7, 0});
  ASSERT_EQ(program.maps().size(), 1u);
  EXPECT_EQ(program.maps()[0].keys.node, 1u);
}

TEST(SwitchProgram, WhatIsHintedComesBackFromItsText) {
  base::Random random(base::seed_from_environment(7));
  SwitchProgram program;
  for (std::uint16_t node = 0; node < 2; ++node) {
    const auto tables = compile(random_tree(random, {}), {.ranges = 8, .sets = 1}).tables;
    const HintTerms hints{4u + node, 0xABCu, node == 0 ? "" : std::string("u\0\xFFser", 6),
                          node == 0 ? 0u : 0x9000u};
    ASSERT_TRUE(program.add({{7, 100u + node, node}, tables, {}, hints}));
  }
  const auto again = SwitchProgram::parse(program.text());
  ASSERT_TRUE(again) << again.error().line << again.error().reason;
  EXPECT_EQ(*again, program);
  for (const std::string line : {"", "0 abc -", "1 abc", "1 abc f", "1 abc fg", "1 abc - -",
                                 "1 abc - 0", "1 abc - 9 9", "1 xyz -", "4294967296 abc -"}) {
    EXPECT_FALSE(SwitchProgram::parse("espalier-switch 1\nmap 7 8\nhints " + line + "\n" +
                                      to_text(program.maps()[0].tables)))
        << line;
  }
}

TEST(SwitchProgram, AFaultNamesItsLine) {
  const auto fault = [](std::string_view text) {
    const auto parsed = SwitchProgram::parse(text);
    return parsed ? std::string("taken")
                  : std::to_string(parsed.error().line) + ": " + parsed.error().reason;
  };
  const std::string tables = "espalier-tables 1\nroot 16 4 0\nway 40\n";
  EXPECT_EQ(fault(""), "0: the text does not begin with 'espalier-switch 1'");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1 2\n" + tables), "taken");
  EXPECT_EQ(fault("espalier-switch 1\n" + tables), "2: wanted: map KEYED REDIRECT");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1\n" + tables),
            "2: wanted: map KEYED REDIRECT [GENERATION HOPS [NODE]], numbers of 32 bits, of "
            "8, and of 16");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1 123456789\n" + tables),
            "2: wanted: map KEYED REDIRECT [GENERATION HOPS [NODE]], numbers of 32 bits, of "
            "8, and of 16");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1 2\n\n" + tables + "way x\n"),
            "7: wanted: way ADDRESS[>NODE]");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1 2\n" + tables + "map 1 3\n" + tables),
            "6: a map has this key already at this node, or there are more than 64 maps");
  EXPECT_EQ(fault("espalier-switch 1\nmap 1 2\n"),
            "2: the text does not begin with 'espalier-tables 1'");
}

TEST(SwitchProgram, EntriesAreChangedByTheirPlaces) {
  base::Random random(base::seed_from_environment(5));
  SwitchProgram program = random_program(random);
  const auto changes = program.parse_changes(
      "change 7 way 0 abc0\n# nothing\nchange 8 set 0 0 0 fff40\nchange 7 way 0 abd0\n");
  ASSERT_TRUE(changes) << changes.error().reason;
  EXPECT_EQ(*program.parse_changes(to_text(*changes)), *changes);
  program.make(*changes);
  EXPECT_EQ(program.maps()[0].tables.ways[0].address, 0xabd0u);
  EXPECT_EQ(program.maps()[1].tables.sets[0][0].ways[0].address, 0xfff40u);
  const auto fault = [&](std::string_view text) {
    const auto parsed = program.parse_changes(text);
    return parsed ? std::string("taken")
                  : std::to_string(parsed.error().line) + ": " + parsed.error().reason;
  };
  EXPECT_EQ(fault("change 7 way 99999 0\n"), "1: there is no such entry");
  EXPECT_EQ(fault("\nchange 7 set 9 0 0 0\n"), "2: there is no such entry");
  EXPECT_EQ(fault("change 7 set 4294967295 0 0 0\n").substr(0, 10), "1: wanted:");
  EXPECT_EQ(fault("change 6 way 0 0\n"), "1: there is no map of this key");
  EXPECT_EQ(fault("change 7 way 0\n").substr(0, 10), "1: wanted:");
  EXPECT_EQ(fault("change 7 way 0 0 0\n").substr(0, 10), "1: wanted:");
  EXPECT_EQ(fault("install\n").substr(0, 10), "1: wanted:");
}

}  // namespace
}  // namespace espalier::dataplane
