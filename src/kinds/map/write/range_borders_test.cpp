// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/range_borders.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kinds/map/testing/map_objects.hpp"

namespace espalier::tree {
namespace {

class RangeBorders : public MapObjects {
 protected:
  static std::string cut_key(int i) { return "key" + std::to_string(10'000 + i); }
  void fill(int keys) {
    if (!map_) map_ = *create("m", options_);
    MapUser user(context_, map_);
    for (int i = 0; i < keys; ++i) user.put(cut_key(i), "value");
  }
  [[nodiscard]] std::vector<std::string> borders(std::string_view low, std::string_view high,
                                                 std::uint32_t parts) {
    return range_borders(context_, *map_, low, high, parts);
  }
  void expect_good(std::string_view low, std::string_view high, std::uint32_t parts) {
    const auto found = borders(low, high, parts);
    EXPECT_LE(found.size(), parts - 1);
    EXPECT_TRUE(std::ranges::is_sorted(found, std::less_equal<>())) << "not ascending";
    for (const std::string& border : found) {
      EXPECT_GT(border, low);
      EXPECT_TRUE(high.empty() || border < high) << border;
    }
  }

  Core map_;
  ThreadContext context_{store_, std::move(*store_.epochs.join()), 0};
};

TEST_F(RangeBorders, CutIntoPartsOfAboutAsManyItems) {
  constexpr int kKeys = 5'000;
  fill(kKeys);
  ASSERT_GE(map_->leaves.load(), 200u);
  for (const std::uint32_t parts : {2u, 3u, 10u, 64u}) {
    auto found = borders("", "", parts);
    ASSERT_EQ(found.size(), parts - 1);
    found.emplace_back("l");  // above all
    int begin = 0;
    for (const std::string& border : found) {
      int end = begin;
      while (end < kKeys && cut_key(end) < border) ++end;
      // The level that is cut has few more nodes than parts, and these are about as full.
      EXPECT_GE(end - begin, kKeys / static_cast<int>(parts) / 4) << parts;
      EXPECT_LE(end - begin, kKeys / static_cast<int>(parts) * 3) << parts;
      begin = end;
    }
  }
  for (int low = 0; low < kKeys; low += 37) {
    expect_good(cut_key(low), cut_key(low + low % 100), 10);
    expect_good(cut_key(low), "", 5);
    expect_good("", cut_key(low), 7);
  }
  EXPECT_EQ(borders(cut_key(1'000), cut_key(2'000), 10).size(), 9u);
}

TEST_F(RangeBorders, OfWhatCannotBeCutThereAreNone) {
  fill(3);
  EXPECT_TRUE(borders("", "", 10).empty()) << "one leaf";
  fill(1'000);
  EXPECT_TRUE(borders("", "", 1).empty());
  EXPECT_TRUE(borders("", "", 0).empty());
  EXPECT_TRUE(borders("b", "a", 10).empty());
  EXPECT_TRUE(borders("a", "a", 10).empty());
  EXPECT_TRUE(borders(std::string(500, 'k'), "", 10).empty());
  EXPECT_TRUE(borders("", std::string(500, 'k'), 10).empty());
  EXPECT_TRUE(borders("z", "", 10).empty()) << "all of it is in the last leaf";
}

}  // namespace
}  // namespace espalier::tree
