// SPDX-License-Identifier: Apache-2.0
#include "dataplane/hit_share.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/compiler.hpp"

namespace espalier::dataplane {
namespace {

// Eight nodes of eight leaves each, of which those of node `hot` are passed a hundred times.
TreeImage tree_with_hot_node(std::uint64_t hot) {
  TreeImage tree;
  std::vector<NodeNumber> nodes;
  std::vector<std::uint64_t> between;
  for (std::uint64_t i = 0; i < 8; ++i) {
    std::vector<NodeNumber> leaves;
    std::vector<std::uint64_t> separators;
    for (std::uint64_t k = 0; k < 8; ++k) {
      leaves.push_back(tree.add_leaf(1000 + i * 8 + k, i == hot ? 100 : 1));
      if (k != 0) separators.push_back(i * 8 + k);
    }
    if (i != 0) between.push_back(i * 8);
    nodes.push_back(tree.add_node(i, i == hot ? 800 : 8, separators, leaves));
  }
  tree.set_root(tree.add_node(99, 856, between, nodes));
  return tree;
}

TEST(HitShare, TellsWhichPartOfWhatPassesIsSentToItsLeaf) {
  const auto limits = TableLimits{.ranges = 15, .sets = 0};
  const auto tables = compile(tree_with_hot_node(3), limits).tables;
  EXPECT_NEAR(hit_share(tree_with_hot_node(3), tables), 800.0 / 856, 1e-9);
  EXPECT_NEAR(hit_share(tree_with_hot_node(5), tables), 8.0 / 856, 1e-9)
      << "the workload has changed";
  EXPECT_NEAR(hit_share(tree_with_hot_node(5), compile(tree_with_hot_node(5), limits).tables),
              800.0 / 856, 1e-9);
}

TEST(HitShare, OfTablesOfNothingOrEverything) {
  EXPECT_EQ(hit_share(tree_with_hot_node(3),
                      compile(tree_with_hot_node(3), {.ranges = 1, .sets = 0}).tables),
            0);
  EXPECT_EQ(hit_share(tree_with_hot_node(3),
                      compile(tree_with_hot_node(3), {.ranges = 64, .sets = 0}).tables),
            1);
}

}  // namespace
}  // namespace espalier::dataplane
