// SPDX-License-Identifier: Apache-2.0
// Texts of topologies: what they say, and what is wrong with those that say nothing.
#include "dataplane/topology_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dataplane/fat_tree.hpp"

namespace espalier::dataplane {
namespace {

const std::string kBeginning = "espalier-topology 1\n";

// The paper's 13 switches, with four nodes in two pods.
std::string text_of_fat_tree() {
  std::string text = kBeginning + "# a FatTree of k = 4\nranges 40\nswitch core core.sock\n";
  for (std::size_t pod = 0; pod < FatTree::kPods; ++pod) {
    const std::string aggregation = "a" + std::to_string(pod);
    text += "switch " + aggregation + " " + aggregation + ".sock 1 400\n";
    text += "link core " + aggregation + "\n";
  }
  for (std::size_t pod = 0; pod < FatTree::kPods; ++pod) {
    for (std::size_t number = 0; number < FatTree::kEdges; ++number) {
      const std::string edge = "e" + std::to_string(pod) + std::to_string(number);
      text += "switch " + edge + " " + edge + ".sock 2 300\n";
      text += "link a" + std::to_string(pod) + " " + edge + "\n";
    }
  }
  return text +
         "root core\nnode 0 e00 roce+memif:n0\nnode 1 e00 roce+memif:n1\n"
         "node 2 e01 roce+memif:n2\nnode 3 e10 roce+memif:n3\n";
}

/// What is wrong, with the line before it.
std::string fault_of(const std::string& lines) {
  const auto parsed = parse_topology(kBeginning + lines);
  return parsed ? "" : std::to_string(parsed.error().line) + ": " + parsed.error().reason;
}

TEST(TopologyText, ItIsThatOfTheFatTree) {
  FatTree tree;
  for (const FatTree::Host& host : std::vector<FatTree::Host>{
           {0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}}) {
    tree.add_node(host);
  }
  const TopologyBudget expected = tree.budget(40, {1, 400}, {2, 300});
  const auto parsed = parse_topology(text_of_fat_tree());
  ASSERT_TRUE(parsed) << parsed.error().line << ": " << parsed.error().reason;
  ASSERT_EQ(parsed->switches.size(), FatTree::kSwitches);
  EXPECT_EQ(parsed->switches[FatTree::aggregation(2)].name, "a2");
  EXPECT_EQ(parsed->switches[FatTree::edge(3, 1)].control, "e31.sock");
  EXPECT_EQ(parsed->nodes[3], "roce+memif:n3");
  EXPECT_EQ(parsed->budget.ranges, expected.ranges);
  EXPECT_EQ(parsed->budget.ways, expected.ways);
  for (std::size_t i = 0; i < FatTree::kSwitches; ++i) {
    EXPECT_EQ(parsed->budget.switches[i].sets, expected.switches[i].sets) << i;
    if (expected.switches[i].sets == 0) continue;
    EXPECT_EQ(parsed->budget.switches[i].nodes_per_set, expected.switches[i].nodes_per_set) << i;
  }
}

TEST(TopologyText, ASwitchWithoutNumbersHasNoLayers) {
  const auto parsed = parse_topology(kBeginning + "switch s s.sock\nroot s\nnode 0 s n.sock\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->budget.ranges, TableLimits{}.ranges);
  EXPECT_EQ(parsed->budget.switches[0].sets, 0u);
  EXPECT_EQ(parsed->budget.ways, (std::vector<std::vector<std::size_t>>{{0}}));
}

TEST(TopologyText, LinesSayWhatIsWrongWithThem) {
  EXPECT_EQ(parse_topology("").error().reason, "wanted: espalier-topology 1");
  EXPECT_EQ(parse_topology("espalier-topology 2\n").error().line, 1u);
  EXPECT_EQ(fault_of("swich a a\n"), "2: a line is ranges, root, switch, link or node");
  EXPECT_EQ(fault_of("ranges many\n"), "2: wanted: ranges NUMBER");
  EXPECT_EQ(fault_of("ranges 0\n"), "2: there are 1 to 30000 ranges");
  EXPECT_EQ(fault_of("root\n"), "2: wanted: root SWITCH");
  EXPECT_EQ(fault_of("root a\n"), "2: no line above names a switch 'a'");
  EXPECT_EQ(fault_of("switch a\n"), "2: wanted: switch NAME CONTROL [LAYERS [NODES]]");
  EXPECT_EQ(fault_of("switch a a 1 2 3\n"), "2: wanted: switch NAME CONTROL [LAYERS [NODES]]");
  EXPECT_EQ(fault_of("switch a a 2 40001\n"),
            "2: a switch has 1 to 80000 nodes in all of its layers");
  const std::string two = "switch a a\nswitch b b\n";
  EXPECT_EQ(fault_of(two + "switch b c\n"), "4: another switch is called 'b'");
  EXPECT_EQ(fault_of(two + "switch c b\n"), "4: switch 'b' has the socket 'b'");
  EXPECT_EQ(fault_of(two + "root a\nroot a\n"), "5: another line names the root");
  EXPECT_EQ(fault_of(two + "link a\n"), "4: wanted: link SWITCH SWITCH");
  EXPECT_EQ(fault_of(two + "link a a\n"), "4: a link leads from 'a' to itself");
  EXPECT_EQ(fault_of(two + "link a b\nlink b a\n"), "5: another line links 'b' and 'a'");
  EXPECT_EQ(fault_of(two + "node a b n\n"), "4: wanted: node NUMBER SWITCH ADDRESS");
  EXPECT_EQ(fault_of(two + "node 1 b n\n"), "4: nodes are numbered from 0 on: this is 0");
  EXPECT_EQ(fault_of(two + "node 0 b n\nnode 1 a n\n"), "5: another node has the address 'n'");
}

TEST(TopologyText, WaysSayWhatIsWrongWithThem) {
  const std::string two = "switch a a\nswitch b b\n";
  EXPECT_EQ(fault_of(two + "node 0 b n\n"), "0: no line names the root, which has the fat roots");
  EXPECT_EQ(fault_of(two + "root a\n"), "0: no line names a node");
  EXPECT_EQ(fault_of(two + "root a\nnode 0 b n\n"), "0: no links lead from 'a' to 'b'");
  const std::string square =
      "switch a a\nswitch b b\nswitch c c\nswitch d d\nlink a b\nlink a c\nlink b d\nlink c d\n"
      "root a\n";
  EXPECT_EQ(fault_of(square + "node 0 d n\n"),
            "0: two ways are the shortest from 'a' to 'd', and tables lie on one");
  EXPECT_EQ(fault_of(square + "switch e e\nlink d e\nnode 0 e n\n"),
            "0: two ways are the shortest from 'a' to 'e', and tables lie on one");
  EXPECT_EQ(fault_of(square + "node 0 b n\nnode 1 c m\n"), "");
  EXPECT_EQ(fault_of("ranges 1\n" + square + "node 0 b n\nnode 1 c m\n"),
            "0: each node takes a range of the fat root at least");
  EXPECT_EQ(fault_of("switch a a 9\nroot a\nnode 0 a n\n"),
            "0: all switches of a way have at most 8 sets together");
}

TEST(TopologyText, NoMoreNodesFitThanASwitchHasMaps) {
  std::string lines = "switch a a\nroot a\n";
  for (std::size_t i = 0; i < kTopologyNodesMax; ++i) {
    lines += "node " + std::to_string(i) + " a n" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(fault_of(lines), "");
  EXPECT_EQ(fault_of(lines + "node " + std::to_string(kTopologyNodesMax) + " a n\n"),
            std::to_string(kTopologyNodesMax + 4) + ": there are at most 64 nodes");
}

}  // namespace
}  // namespace espalier::dataplane
