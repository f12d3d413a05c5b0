// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tree_image.hpp"

#include <gtest/gtest.h>

#include <array>

#include "dataplane/testing/random_tree.hpp"

namespace espalier::dataplane {
namespace {

TEST(TreeImage, AChildHasTheKeysFromItsSeparatorOn) {
  TreeImage tree;
  const NodeNumber a = tree.add_leaf(64, 1);
  const NodeNumber b = tree.add_leaf(128, 2);
  const std::array<std::uint64_t, 2> separators{10, 11};
  const std::array children{a, kHere, b};
  const NodeNumber node = tree.add_node(192, 3, separators, children);
  EXPECT_EQ(tree.child(node, 0), a);
  EXPECT_EQ(tree.child(node, 9), a);
  EXPECT_EQ(tree.child(node, 10), kHere);
  EXPECT_EQ(tree.child(node, 11), b);
  EXPECT_EQ(tree.child(node, ~std::uint64_t{0}), b);
  EXPECT_TRUE(tree.is_leaf(a));
  EXPECT_FALSE(tree.is_leaf(node));
}

TEST(TreeImage, APieceIsPassedAsOftenAsItsChildren) {
  const TreeImage wide = even_tree(1, 40, 10, std::vector<std::uint64_t>(40, 3));
  const TreeImage cut = cut_wide_nodes(wide, 16);
  const auto pieces = cut.children(cut.root());
  ASSERT_EQ(pieces.size(), 3u);  // of 13, 13 and 14
  for (const NodeNumber piece : pieces) {
    EXPECT_EQ(cut.accesses(piece), 3 * cut.children(piece).size());
    EXPECT_EQ(cut.address(piece), wide.address(wide.root()));
    EXPECT_GE(cut.children(piece).size(), 13u);
  }
  EXPECT_EQ(cut.accesses(cut.root()), 120u);
}

// Each key ends at the same leaf, or stays at the same node, before and after.
TEST(TreeImage, CutTreesLeadWhereTheWholeDoes) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 30; ++round) {
    const TreeImage whole =
        random_tree(random, {.levels = 2, .children_max = 100, .here = round % 2 == 0 ? 0.2 : 0.0});
    const std::size_t width = 2 + random.below(20);
    const TreeImage cut = cut_wide_nodes(whole, width);
    for (NodeNumber node = 0; node < cut.size(); ++node) {
      ASSERT_LE(cut.children(node).size(), width);
    }
    for (const std::uint64_t key : border_keys(whole, random)) {
      const NodeNumber before = path_of(whole, key).back();
      const NodeNumber after = path_of(cut, key).back();
      ASSERT_EQ(whole.address(before), cut.address(after)) << key;
      ASSERT_EQ(whole.is_leaf(before), cut.is_leaf(after));
    }
  }
}

}  // namespace
}  // namespace espalier::dataplane
