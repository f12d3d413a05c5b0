// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/host/leaf_guess.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/testing/leaf_model.hpp"

namespace espalier::tree {
namespace {

constexpr wire::Lid kParent = 7;
constexpr std::uint64_t kLeaves = 5000;

// Two bytes, big-endian: keys in the order of their numbers.
std::string key_of(std::uint32_t number) {
  return {static_cast<char>(number >> 8), static_cast<char>(number & 0xFF)};
}

// A parent of 32 children, each for 1000 numbers.
class LeafGuessTest : public ::testing::Test {
 protected:
  LeafGuessTest() : g_(Geometry::of({})), buffer_(g_) {
    std::vector<std::string> separators;
    for (std::uint32_t i = 1; i < 32; ++i) separators.push_back(key_of(1000 * i));
    std::vector<Child> children{{"", 100}};
    for (std::uint32_t i = 1; i < 32; ++i) children.push_back({separators[i - 1], 100 + i});
    NodeFrame frame;
    build_interior(buffer_.data(), g_, 1, children, frame);
    go_live(buffer_.data(), 1);
  }

  LeafGuess::Guess guess(std::uint32_t number) {
    SearchKey key;
    key.assign(key_of(number));
    const NodeView node = buffer_.view();
    const SearchKit& kit = best_search_kit();
    const GroupChoice choice = choose_group(node, NodeHead::read(node.bytes()), key, kit);
    EXPECT_TRUE(guess_.is_worth(kLeaves));
    guess_.prepare(kParent, choice.first);
    return guess_.about(kParent, node, choice, choose_child(node, key, choice, kit));
  }

  LeafProbe found_at(std::uint32_t offset) {
    LeafProbe probe;
    probe.begin = offset;
    return probe;
  }

  Geometry g_;
  NodeBuffer buffer_;
  LeafGuess guess_;
};

TEST_F(LeafGuessTest, KnowsALeafThatWasFoundBefore) {
  const LeafGuess::Guess first = guess(3500);
  ASSERT_TRUE(first.made());
  EXPECT_EQ(first.leaf, 0u);
  guess_.learn(first, 77 * wire::kBlockBytes, 40, found_at(g_.sorted_begin));
  EXPECT_EQ(guess(3500).leaf, 77 * wire::kBlockBytes);
  EXPECT_EQ(guess(3999).leaf, 77 * wire::kBlockBytes);
  EXPECT_EQ(guess(4000).leaf, 0u) << "of another child nothing is known";
}

TEST_F(LeafGuessTest, PlacesAKeyByItsShareOfTheRange) {
  guess_.learn(guess(5000), 512, 40, found_at(g_.sorted_begin));
  const std::uint32_t bytes = 40u << g_.chunk_shift;
  EXPECT_NEAR(guess(5000).item, g_.sorted_begin, 16);
  EXPECT_NEAR(guess(5250).item, g_.sorted_begin + bytes / 4, 16);
  EXPECT_NEAR(guess(5999).item, g_.sorted_begin + bytes, 16);
  EXPECT_EQ(guess(5250).end, g_.sorted_begin + bytes);
}

TEST_F(LeafGuessTest, MakesNoneWhereTheEndOfTheRangeIsNotAtHand) {
  EXPECT_FALSE(guess(15'500).made()) << "the last child of its group";
  EXPECT_TRUE(guess(16'500).made());
}

TEST_F(LeafGuessTest, GuessesSeldomAfterManyWrongOnes) {
  const auto paid = [&] {
    int times = 0;
    for (int i = 0; i < 160; ++i) times += guess_.is_worth(kLeaves) ? 1 : 0;
    return times;
  };
  EXPECT_EQ(paid(), 160);
  LeafGuess::Guess wrong = guess(3500);
  wrong.leaf = 9999 * wire::kBlockBytes;
  for (std::uint64_t leaf = 1; leaf <= 300; ++leaf) {
    guess_.learn(wrong, leaf * wire::kBlockBytes, 40, found_at(g_.sorted_begin));
  }
  EXPECT_EQ(paid(), 10);
  guess_.learn(wrong, wrong.leaf, 40, found_at(wrong.item));
  EXPECT_EQ(paid(), 160);
}

TEST_F(LeafGuessTest, MakesNoneInSmallMapsAndForgetsWhenMapsGrow) {
  EXPECT_FALSE(guess_.is_worth(10));
  guess_.learn(guess(3500), 77 * wire::kBlockBytes, 40, found_at(g_.sorted_begin));
  EXPECT_EQ(guess(3500).leaf, 77 * wire::kBlockBytes);
  EXPECT_TRUE(guess_.is_worth(100 * kLeaves));
  EXPECT_EQ(guess(3500).leaf, 0u);
}

}  // namespace
}  // namespace espalier::tree
