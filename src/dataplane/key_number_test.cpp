// SPDX-License-Identifier: Apache-2.0
#include "dataplane/key_number.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/random.hpp"

namespace espalier::dataplane {
namespace {

std::uint64_t number(std::string_view prefix, std::string_view key) {
  return key_number(prefix, key);
}

Branches branches(const std::string& prefix, const std::vector<std::string>& separators) {
  const std::vector<std::string_view> keys(separators.begin(), separators.end());
  std::vector<NodeNumber> children;
  for (NodeNumber i = 0; i <= separators.size(); ++i) children.push_back(i);
  return number_branches(prefix, keys, children);
}

TEST(KeyNumber, TheEightBytesBehindThePrefixCount) {
  EXPECT_EQ(number("", "\x01"), 0x0100'0000'0000'0000u);
  EXPECT_EQ(number("user", "user12345678"), 0x3132'3334'3536'3738u);
  EXPECT_EQ(number("user", "user123456789"), 0x3132'3334'3536'3738u);
  EXPECT_EQ(number("user", "user"), 0u);
  EXPECT_EQ(number("user", "use"), 0u);
  EXPECT_EQ(number("user", "usa9"), 0u);
  EXPECT_EQ(number("user", "usex"), ~std::uint64_t{0});
}

TEST(KeyNumber, WhatKeysShare) {
  const std::string a = "user1", b = "user12", c = "user2";
  EXPECT_EQ(shared_prefix(std::vector<std::string_view>{a, b, c}), 4u);
  EXPECT_EQ(shared_prefix(std::vector<std::string_view>{a, b}), 5u);
  EXPECT_EQ(shared_prefix({}), 0u);
}

TEST(KeyNumber, WhatNumbersDoNotTellStaysHere) {
  // One byte decides.
  EXPECT_EQ(branches("", {"b"}).children, (std::vector<NodeNumber>{0, 1}));
  // "bbbbbbbb" and "bbbbbbbba" have one number and lie on both sides.
  const Branches tied = branches("", {"bbbbbbbba"});
  EXPECT_EQ(tied.children, (std::vector<NodeNumber>{0, kHere, 1}));
  EXPECT_EQ(tied.separators,
            (std::vector<std::uint64_t>{0x6262'6262'6262'6262, 0x6262'6262'6262'6263}));
  // Child 1 has only keys of the tied number.
  EXPECT_EQ(branches("", {"bbbbbbbba", "bbbbbbbbc"}).children,
            (std::vector<NodeNumber>{0, kHere, 2}));
  EXPECT_EQ(branches("", {"bbbbbbbb", "bbbbbbbbc"}).children,
            (std::vector<NodeNumber>{0, kHere, 2}));
  // The largest number has nothing behind it.
  EXPECT_EQ(branches("", {"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"}).children,
            (std::vector<NodeNumber>{0, kHere}));
  // A zero at the end makes a key greater, but not its number.
  EXPECT_EQ(branches("", {std::string("b\0", 2)}).children, (std::vector<NodeNumber>{0, kHere, 1}));
  // All below the prefix have 0.
  EXPECT_EQ(branches("user", {"a", "user"}).children, (std::vector<NodeNumber>{kHere, 2}));
}

// For any key, the number's child is the key's own, or the node itself.
TEST(KeyNumber, NoNumberLeadsToAnotherChildRandom) {
  base::Random random(base::seed_from_environment(1));
  const auto draw = [&random](const std::string& prefix) {
    std::string key = random.chance(0.9) ? prefix : std::string(1, static_cast<char>(random()));
    const std::size_t length = random.below(12);
    for (std::size_t i = 0; i < length; ++i) {
      key += static_cast<char>(
          "\0\x01"
          "a\xFF"[random.below(4)]);
    }
    return key;
  };
  std::size_t decided = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string prefix(random.below(3), 'p');
    std::set<std::string, std::less<>> drawn;
    for (std::size_t i = random.below(8); i != 0; --i) drawn.insert(draw(prefix));
    const std::vector<std::string> separators(drawn.begin(), drawn.end());
    const Branches made = branches(prefix, separators);
    ASSERT_EQ(made.separators.size() + 1, made.children.size());
    ASSERT_TRUE(std::ranges::is_sorted(made.separators, std::less_equal{}));
    for (int i = 0; i < 50; ++i) {
      const std::string key = i % 4 == 0 && !separators.empty()
                                  ? separators[random.below(separators.size())]
                                  : draw(prefix);
      const auto at = std::ranges::upper_bound(made.separators, number(prefix, key));
      const NodeNumber child =
          made.children[static_cast<std::size_t>(at - made.separators.begin())];
      const auto own = std::ranges::upper_bound(separators, key) - separators.begin();
      if (child == kHere) continue;
      ++decided;
      ASSERT_EQ(child, static_cast<NodeNumber>(own)) << "round " << round;
    }
  }
  EXPECT_GT(decided, 30'000u);
}

}  // namespace
}  // namespace espalier::dataplane
