// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/prefix_of_most.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/testing/map_objects.hpp"

namespace espalier::offload {
namespace {

TEST(PrefixOfMost, SomeMayBeginOtherwise) {
  std::vector<std::string> keys;
  for (int i = 10; i < 24; ++i) keys.push_back("user" + std::to_string(i));
  EXPECT_EQ(prefix_of_most(keys), "user");
  keys.insert(keys.begin(), "admin");
  keys.push_back("zebra");
  EXPECT_EQ(prefix_of_most(keys), "user") << "14 of 16";
  keys.push_back("zebras");
  EXPECT_EQ(prefix_of_most(keys), "") << "14 of 17";
}

TEST(PrefixOfMost, OfFewKeysAllCount) {
  EXPECT_EQ(prefix_of_most(std::vector<std::string>{"one"}), "one");
  EXPECT_EQ(prefix_of_most(std::vector<std::string>{"one", "two"}), "");
  EXPECT_EQ(prefix_of_most(std::vector<std::string>{"on", "one", "oneself"}), "on");
}

// By trying all prefixes.
TEST(PrefixOfMost, IsTheLongestRandom) {
  base::Random random(base::seed_from_environment(1));
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> keys;
    for (std::uint64_t i = random.between(1, 40); i != 0; --i) {
      std::string key;
      for (std::uint64_t bytes = random.below(6); bytes != 0; --bytes) {
        key += random.chance(0.8) ? 'a' : 'b';
      }
      keys.push_back(key);
    }
    std::ranges::sort(keys);
    std::size_t longest = 0;
    for (const std::string& key : keys) {
      for (std::size_t bytes = 0; bytes <= key.size(); ++bytes) {
        const std::string prefix = key.substr(0, bytes);
        const auto with = std::ranges::count_if(
            keys, [&](const std::string& each) { return each.starts_with(prefix); });
        if (static_cast<std::size_t>(with) * 8 >= keys.size() * kPrefixOfEighths) {
          longest = std::max(longest, bytes);
        }
      }
    }
    ASSERT_EQ(prefix_of_most(keys).size(), longest);
  }
}

/// A map of small nodes.
class PrefixOfMap : public ::testing::Test {
 protected:
  void put(const std::string& key) { user_.put(key, "value"); }
  std::string prefix(const std::string& low, const std::string& high) {
    auto slot = *store_.epochs.join();
    return prefix_of_most(*map_, low, high, slot);
  }

  tree::StoreCore store_ = tree::make_store();
  tree::ThreadContext context_{store_, *store_.epochs.join(), 0};
  std::shared_ptr<tree::MapCore> map_ = *tree::create_map(store_, "map", {.node_bytes = 512});
  tree::MapUser user_{context_, map_};
};

TEST_F(PrefixOfMap, AStrayKeyTakesNothingFromOthers) {
  for (int i = 1000; i < 9000; ++i) put("user/" + std::to_string(i));
  EXPECT_EQ(prefix("user/1000", "user/8999"), "user/");
  put("admin");
  put("zebra");
  EXPECT_EQ(prefix("admin", "zebra"), "user/");
  for (int i = 1000; i < 9000; ++i) put("other/" + std::to_string(i));
  EXPECT_EQ(prefix("admin", "zebra"), "");
}

// There are no separators, or too few to tell.
TEST_F(PrefixOfMap, OfASmallMapAllKeysCount) {
  EXPECT_EQ(prefix("", ""), "");
  put("user1");
  put("user2");
  EXPECT_EQ(prefix("user1", "user2"), "user");
  put("admin");
  EXPECT_EQ(prefix("admin", "user2"), "");
}

}  // namespace
}  // namespace espalier::offload
