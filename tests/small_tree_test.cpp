// SPDX-License-Identifier: Apache-2.0
// Small trees, exhaustively: every order of inserting up to seven keys into nodes that hold four,
// and orders of erasing them, with an audit after every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/history.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/store.hpp"

namespace espalier::test {
namespace {

using Order = std::vector<std::size_t>;

struct TreeShape {
  const char* name;
  MapOptions options;
};

// In nodes of 512 bytes an item of 64 bytes leaves room for three more.
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kValueBytes = 32;

class ModelSmallTrees : public ::testing::TestWithParam<TreeShape> {
 protected:
  // Keys that differ in their last byte (prefixes are shared) or in their first one.
  static std::string key(std::size_t i, bool shared_prefix) {
    std::string key(kKeyBytes, 'k');
    (shared_prefix ? key.back() : key.front()) = static_cast<char>('a' + i);
    return key;
  }

  // Inserts in one order and erases in the other, into an empty map and back.
  void grow_and_shrink(Map& map, const Order& inserts, const Order& erases, bool shared_prefix) {
    Contents model;
    for (const std::size_t i : inserts) {
      const std::string value(kValueBytes, static_cast<char>('0' + i));
      ASSERT_TRUE(map.put(key(i, shared_prefix), value));
      model[key(i, shared_prefix)] = value;
      ASSERT_NO_FATAL_FAILURE(compare(map, model));
    }
    for (const std::size_t i : erases) {
      ASSERT_TRUE(map.erase(key(i, shared_prefix)));
      model.erase(key(i, shared_prefix));
      ASSERT_NO_FATAL_FAILURE(compare(map, model));
    }
    splits_ += map.stats()->splits;
    merges_ += map.stats()->merges;
  }

  // A map of its own for each pair of orders.
  void run(const Order& inserts, const Order& erases, bool shared_prefix) {
    auto map = store_.create_map("tree", GetParam().options);
    ASSERT_TRUE(map) << message(map.error());
    ASSERT_NO_FATAL_FAILURE(grow_and_shrink(*map, inserts, erases, shared_prefix))
        << "inserted " << text(inserts) << " erased " << text(erases);
    // With a log, leaves may wait with their last erasures in it.
    if (GetParam().options.log_bytes == 0) {
      ASSERT_EQ(map->stats()->leaves, 1u);
      ASSERT_EQ(map->stats()->height, 1u);
    }
    ASSERT_TRUE(store_.drop_map("tree"));
  }

  static std::string text(const Order& order) {
    std::string out;
    for (const std::size_t i : order) out += static_cast<char>('a' + i);
    return out;
  }

  static Order first(std::size_t keys) {
    Order order(keys);
    for (std::size_t i = 0; i < keys; ++i) order[i] = i;
    return order;
  }

  static void compare(const Map& map, const Contents& model) {
    auto expected = model.begin();
    bool same = true;
    const auto count = map.scan("", "", [&](std::span<const Item> items) {
      for (const Item& item : items) {
        same = same && expected != model.end() && item.key == expected->first &&
               item.value == expected->second;
        if (same) ++expected;
      }
      return true;
    });
    ASSERT_TRUE(count);
    ASSERT_EQ(*count, model.size());
    ASSERT_TRUE(same);
    const auto wrong = map.audit();
    ASSERT_TRUE(wrong.empty()) << wrong.front();
  }

  Store store_ = open_store();
  std::uint64_t splits_ = 0;
  std::uint64_t merges_ = 0;
};

// All orders of inserting with all orders of erasing.
TEST_P(ModelSmallTrees, AllOrdersOfUpToFiveKeys) {
  constexpr std::size_t kKeys = kSanitized ? 4 : 5;
  for (std::size_t keys = 1; keys <= kKeys; ++keys) {
    Order inserts = first(keys);
    do {
      Order erases = first(keys);
      do {
        ASSERT_NO_FATAL_FAILURE(run(inserts, erases, keys % 2 == 0));
      } while (std::next_permutation(erases.begin(), erases.end()));
    } while (std::next_permutation(inserts.begin(), inserts.end()));
  }
}

// All orders of inserting, each with its mirror, its own and a random order of erasing.
TEST_P(ModelSmallTrees, AllOrdersOfInsertingSevenKeys) {
  constexpr std::size_t kKeys = kSanitized ? 5 : 7;
  const std::uint64_t seed = seed_from_environment(41);
  SCOPED_TRACE(seed_text(seed));
  Random random(seed);
  Order inserts = first(kKeys);
  std::uint64_t round = 0;
  do {
    Order erases = inserts;
    switch (round % 3) {
      case 0: break;
      case 1: std::reverse(erases.begin(), erases.end()); break;
      default:
        for (std::size_t i = kKeys; i > 1; --i) std::swap(erases[random.below(i)], erases[i - 1]);
        break;
    }
    ASSERT_NO_FATAL_FAILURE(run(inserts, erases, round % 2 == 0));
    ++round;
  } while (std::next_permutation(inserts.begin(), inserts.end()));
  // Trees that never split or merged would test nothing.
  EXPECT_GT(splits_, 0u);
  EXPECT_GT(merges_, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ModelSmallTrees,
    ::testing::Values(TreeShape{"NoLog", {.node_bytes = 512, .log_bytes = 0}},
                      TreeShape{"SmallLog", {.node_bytes = 512, .log_bytes = 128}},
                      TreeShape{"NoVersions",
                                {.node_bytes = 512, .log_bytes = 64, .versions = false}}),
    [](const ::testing::TestParamInfo<TreeShape>& shape) { return std::string(shape.param.name); });

}  // namespace
}  // namespace espalier::test
