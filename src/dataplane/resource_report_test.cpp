// SPDX-License-Identifier: Apache-2.0
#include "dataplane/resource_report.hpp"

#include <gtest/gtest.h>

#include "dataplane/compiler.hpp"
#include "dataplane/testing/random_tree.hpp"
#include "dataplane/way_tables.hpp"

namespace espalier::dataplane {
namespace {

TreeImage tree_of_levels(std::size_t levels) {
  std::size_t leaves = 1;
  for (std::size_t i = 0; i < levels; ++i) leaves *= 12;
  return even_tree(levels, 12, 0x123'4567'89AB, std::vector<std::uint64_t>(leaves, 1));
}

TEST(ResourceReport, RangesAsPrefixes) {
  EXPECT_EQ(prefixes_of(0, 0xFFFF), 1u);
  EXPECT_EQ(prefixes_of(5, 5), 1u);
  EXPECT_EQ(prefixes_of(0, 0x7FFF), 1u);
  EXPECT_EQ(prefixes_of(1, 0xFFFE), 30u);
  EXPECT_EQ(prefixes_of(2, 5), 2u);
  EXPECT_EQ(prefixes_of(0xFFFF, 0xFFFF), 1u);
}

TEST(ResourceReport, AFatRootAndASetFillASwitchOfTwelveStages) {
  const IndexTables tables = compile(tree_of_levels(5), {.ranges = 600, .sets = 3}).tables;
  ASSERT_EQ(tables.sets.size(), 3u);
  SwitchTarget target;
  const auto two = report_resources(tables, target);
  ASSERT_TRUE(two) << two.error();
  EXPECT_EQ(two->switches, 2u);
  EXPECT_EQ(two->sets_of_switch, (std::vector<std::size_t>{1, 2}));
  EXPECT_NE(to_text(*two).find("--row 1,2\n"), std::string::npos);
  // The parts of a row take what the whole took.
  const WayBudget way{.ranges = 600, .hops = {{1, 3600}, {2, 3600}}};
  std::size_t sram = 0;
  for (const IndexTables& part : cut_tables(tables, way)) {
    const auto report = report_resources(part, {.switches = 1});
    ASSERT_TRUE(report) << report.error();
    sram += report->sram_blocks;
  }
  EXPECT_EQ(sram, two->sram_blocks);
  EXPECT_GT(two->sram_blocks, 0u);
  EXPECT_GE(two->tcam_blocks, 4u);
  EXPECT_NE(to_text(*two).find("switch 2 stage 7  set 3, pivot 1: "), std::string::npos)
      << to_text(*two);

  target.switches = 1;
  const auto one = report_resources(tables, target);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error(),
            "set 2 begins in switch 2, and there are 1: compile with fewer sets, or name more "
            "switches on the path");
}

TEST(ResourceReport, WhatIsTooLargeIsNamed) {
  const IndexTables tables = compile(tree_of_levels(5), {.ranges = 600, .sets = 1}).tables;
  SwitchTarget target;
  target.sram_blocks = 10;
  const auto nodes = report_resources(tables, target);
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().find("stage 7 of switch 1 wants "), 0u) << nodes.error();
  EXPECT_NE(nodes.error().find("fewer nodes per set"), std::string::npos);

  target.sram_blocks = 80;
  target.tcam_blocks = 2;
  const auto ranges = report_resources(tables, target);
  ASSERT_FALSE(ranges);
  EXPECT_NE(ranges.error().find("blocks of TCAM and has 2: compile with fewer ranges"),
            std::string::npos)
      << ranges.error();

  target.stages = 4;
  const auto stages = report_resources(tables, target);
  ASSERT_FALSE(stages);
  EXPECT_EQ(stages.error(), "fat root takes 6 stages in a row, and a switch 'tofino' has 4");
}

TEST(ResourceReport, PrefixesTakeMoreThanRanges) {
  const IndexTables tables = compile(tree_of_levels(3), {.ranges = 600, .sets = 1}).tables;
  SwitchTarget target;
  const auto ranges = report_resources(tables, target);
  target.matches_ranges = false;
  target.tcam_blocks = 100;
  const auto prefixes = report_resources(tables, target);
  ASSERT_TRUE(ranges && prefixes);
  EXPECT_GT(prefixes->tcam_blocks, ranges->tcam_blocks);
}

}  // namespace
}  // namespace espalier::dataplane
