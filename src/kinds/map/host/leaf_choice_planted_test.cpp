// SPDX-License-Identifier: Apache-2.0
// A walk that was led to a wrong leaf finds that out, where only that leaf's fences can tell; and
// what leads to leaves compares all that a node's separators begin with.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/testing/tree_fixture.hpp"

namespace espalier::tree {
namespace {

/// Keys whose first 8 bytes are those of all fences, too; a way to one of them is led astray once.
class LedAstray {
 public:
  LedAstray() { tree_.fill(400, "samehead"); }
  ~LedAstray() { on_moment = nullptr; }
  LedAstray(const LedAstray&) = delete;
  LedAstray& operator=(const LedAstray&) = delete;

  /// The leaf beside the key's stands in its parent, until a request has chosen it.
  void lead_to_neighbour() {
    const NodeView root = tree_.map().node(tree_.map().root);
    ASSERT_EQ(root.level(), 1u);
    std::byte* const group = tree_.bytes(tree_.map().root) + root.group_offset(0) + 64;
    swap_children(group);
    on_moment = [this, group](Moment moment) {
      if (moment != Moment::leaf_chosen || std::exchange(came_, true)) return;
      swap_children(group);
    };
  }
  [[nodiscard]] std::string key() const {  // of child 3
    return std::string(tree_.map().node(tree_.map().root).separator(3)) + "zz";
  }
  [[nodiscard]] bool came() const { return came_; }
  TreeFixture& tree() { return tree_; }

 private:
  static void swap_children(std::byte* group) {
    std::byte third[4];
    std::memcpy(third, group + 12, 4);
    std::memcpy(group + 12, group + 16, 4);
    std::memcpy(group + 16, third, 4);
  }

  mutable TreeFixture tree_{{.node_bytes = 1024}};
  bool came_ = false;
};

bool in_a_group() {
  LedAstray walk;
  const std::string key = walk.key();
  walk.tree().put(key, "value");
  walk.lead_to_neighbour();
  OneAnswer answer;
  const bool found = walk.tree().run(TreeFixture::request(Op::get, key), answer).found;
  EXPECT_TRUE(walk.came());
  return found && answer.value == "value";
}

bool alone() {
  constexpr bool kNever = false;
  LedAstray walk;
  const std::string key = walk.key();
  walk.tree().put(key, "value");
  HostExecutor<HostAccess> executor(
      walk.tree().context(), walk.tree().map(), 1, [&](std::uint32_t, base::ReadyQueue& queue) {
        return HostAccess(walk.tree().map().base, queue, false, &kNever);
      });
  walk.lead_to_neighbour();
  Completion answer;
  EXPECT_TRUE(executor.read_one(key, answer));
  const bool found = answer.found && answer.value == "value";
  executor.let_go();
  EXPECT_TRUE(walk.came());
  return found;
}

TEST(LeafChoicePlanted, AMissThatAWrongLeafSaysIsNoticed) {
  EXPECT_TRUE(in_a_group());
  EXPECT_TRUE(alone());
  const base::Planted planted(Bug::miss_believed);
  EXPECT_FALSE(in_a_group());
  EXPECT_FALSE(alone());
}

// Scans and writes that are led astray go on at the right leaf.
TEST(LeafChoicePlanted, ScansAndWritesAskFences) {
  LedAstray walk;
  const std::string key = walk.key();
  walk.tree().put(key, "value");
  walk.lead_to_neighbour();
  Request scan = TreeFixture::request(Op::scan, key);
  scan.limit = 1;
  OneAnswer items;
  walk.tree().run(scan, items);
  EXPECT_TRUE(walk.came());
  ASSERT_EQ(items.items_.size(), 1u);
  EXPECT_EQ(items.items_[0].first, key);
  LedAstray other;
  other.lead_to_neighbour();
  EXPECT_TRUE(other.tree().put(key, "value").ok);
  EXPECT_TRUE(other.came());
  EXPECT_EQ(audit(other.tree().map()), std::vector<std::string>{});
}

// The child that covers a key which differs from all separators behind its first 8 bytes.
std::uint32_t child_behind_the_first_word() {
  const Geometry g = Geometry::of({});
  const std::string prefix = "https://www.site-";
  const std::vector<std::string> separators{prefix + "1", prefix + "2", prefix + "3"};
  std::vector<Child> children{{"", 1}};
  for (const std::string& separator : separators) children.push_back({separator, 1});
  NodeBuffer buffer(g);
  build_interior(buffer.data(), g, 1, children, {});
  SearchKey key;
  key.assign("https://www.zebra");
  return choose_child(buffer.view(), key, best_search_kit());
}

TEST(LeafChoicePlanted, APrefixThatIsComparedShortIsNoticed) {
  EXPECT_EQ(child_behind_the_first_word(), 3u);
  const base::Planted planted(Bug::prefix_compared_short);
  EXPECT_NE(child_behind_the_first_word(), 3u);
}

}  // namespace
}  // namespace espalier::tree
