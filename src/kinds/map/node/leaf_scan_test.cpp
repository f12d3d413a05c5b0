// SPDX-License-Identifier: Apache-2.0
// Scans of one leaf against a model: both directions, all versions, all kinds of bounds.
#include "kinds/map/node/leaf_scan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kinds/map/testing/leaf_model.hpp"

namespace espalier::tree {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct Bounds {
  std::optional<std::string> low;
  std::optional<std::string> high;
};

Pairs expected_items(const LeafModel& model, std::uint64_t version, const Bounds& bounds) {
  Pairs pairs;
  for (const auto& [key, value] : model.at(version)) {
    if (bounds.low && key < *bounds.low) continue;
    if (bounds.high && key >= *bounds.high) continue;
    pairs.emplace_back(key, value);
  }
  return pairs;
}

// Takes runs of random lengths.
Pairs take_all(LeafScan& scan, std::uint64_t version, bool backward, base::Random& random) {
  Pairs pairs;
  Item items[64];
  for (;;) {
    const auto room = static_cast<std::uint32_t>(1 + random.below(64));
    std::uint64_t out_of_line = 0;
    const std::uint32_t count =
        backward ? scan.take_back(items, room, out_of_line) : scan.take(items, room, out_of_line);
    EXPECT_EQ(out_of_line, 0u);
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_LE(items[i].version, version);
      pairs.emplace_back(items[i].key, items[i].value);
    }
    if (count < room) break;
  }
  if (backward) std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

Pairs scan(const LeafModel& model, std::uint64_t version, const Bounds& bounds, bool backward,
           base::Random& random) {
  SearchKey low;
  SearchKey high;
  if (bounds.low) low.assign(*bounds.low);
  if (bounds.high) high.assign(*bounds.high);
  LeafScan scan;
  scan.begin(model.view(), version, best_search_kit(), bounds.low ? &low : nullptr,
             bounds.high ? &high : nullptr);
  return take_all(scan, version, backward, random);
}

// A leaf of which only its head, its log, its fences and a window have been brought. What lies
// elsewhere looks like items with other keys.
class PartOfLeaf {
 public:
  explicit PartOfLeaf(const NodeView& leaf) : whole_(leaf), bytes_(leaf.geometry().node_bytes) {
    std::fill(bytes_.begin(), bytes_.end(), std::byte{0x03});
    const Geometry& g = leaf.geometry();
    bring(0, g.sorted_begin);
    bring(leaf.log_begin(), leaf.lock_word().units() * wire::kLogUnitBytes);
    bring(leaf.fence_begin(), g.node_bytes - leaf.fence_begin());
  }
  void bring(LeafWindow window) { bring(window.begin, window.end - window.begin); }
  [[nodiscard]] NodeView view() const { return {bytes_.data(), whole_.geometry()}; }

 private:
  void bring(std::uint32_t begin, std::uint32_t bytes) {
    std::memcpy(bytes_.data() + begin, whole_.bytes() + begin, bytes);
  }

  NodeView whole_;
  std::vector<std::byte> bytes_;
};

struct Parts {
  Pairs pairs;
  std::uint32_t bytes = 0;  // of sorted items, brought first
  bool rest = false;
};

// Takes the items part by part, each brought when the ones before it are taken.
Parts scan_in_parts(const LeafModel& model, std::uint64_t version, const Bounds& bounds,
                    bool backward, std::uint64_t wanted_bytes, base::Random& random) {
  const SearchKit& kit = best_search_kit();
  SearchKey low_key;
  SearchKey high_key;
  if (bounds.low) low_key.assign(*bounds.low);
  if (bounds.high) high_key.assign(*bounds.high);
  const SearchKey* low = bounds.low ? &low_key : nullptr;
  const SearchKey* high = bounds.high ? &high_key : nullptr;
  const bool knows_far = random.below(2) == 0;
  PartOfLeaf part(model.view());
  const NodeView leaf = part.view();
  LeafWindow window = backward
                          ? window_below(leaf, kit, knows_far ? low : nullptr, high, wanted_bytes)
                          : window_above(leaf, kit, low, knows_far ? high : nullptr, wanted_bytes);
  const SearchKey* far = backward ? low : high;
  window = widened(leaf, kit, window, far);
  part.bring(window);
  Parts parts;
  parts.bytes = window.end - window.begin;
  LeafScan scan;
  scan.begin_window(leaf, version, kit, window, low, high);
  parts.pairs = take_all(scan, version, backward, random);
  const LeafWindow rest =
      backward ? rest_below(leaf, kit, window, far) : rest_above(leaf, kit, window, far);
  if (rest.empty()) return parts;
  parts.rest = true;
  part.bring(rest);
  scan.begin_window(leaf, version, kit, rest, low, high);
  Pairs others = take_all(scan, version, backward, random);
  if (backward) std::swap(others, parts.pairs);
  parts.pairs.insert(parts.pairs.end(), others.begin(), others.end());
  return parts;
}

std::optional<std::string> random_bound(const LeafModel& model, base::Random& random) {
  const auto& items = model.newest();
  switch (random.below(4)) {
    case 0: return std::nullopt;
    case 1: return model.key(random);
    default: break;
  }
  if (items.empty()) return std::nullopt;
  auto at = items.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random.below(items.size())));
  switch (random.below(4)) {
    case 0: return at->first.substr(0, at->first.size() - 1) + '\x01';
    case 1: return at->first + '\x01';  // between two keys: perhaps where one window ends
    default: return at->first;
  }
}

TEST(LeafScan, DeliversTheVisibleItemsInOrder) {
  base::Random random(base::seed_from_environment(41));
  for_many_leaves(random, [&](const LeafModel& model) {
    for (int round = 0; round < 12; ++round) {
      const std::uint64_t version =
          random.below(3) == 0 ? kNewest
                               : random.between(LeafModel::kCreated, model.newest_version() + 1);
      Bounds bounds{random_bound(model, random), random_bound(model, random)};
      if (bounds.low && bounds.high && *bounds.low > *bounds.high)
        std::swap(bounds.low, bounds.high);
      for (const bool backward : {false, true}) {
        ASSERT_EQ(scan(model, version, bounds, backward, random),
                  expected_items(model, version, bounds))
            << "at " << version << (backward ? " backward" : " forward") << " from "
            << testing::PrintToString(bounds.low) << " to " << testing::PrintToString(bounds.high);
      }
    }
  });
}

TEST(LeafScan, DeliversTheSameInParts) {
  base::Random random(base::seed_from_environment(44));
  std::uint64_t rests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_of_all = 0;
  for_many_leaves(random, [&](const LeafModel& model) {
    for (int round = 0; round < 12; ++round) {
      const std::uint64_t version = random.between(LeafModel::kCreated, model.newest_version() + 1);
      Bounds bounds{random_bound(model, random), random_bound(model, random)};
      if (bounds.low && bounds.high && *bounds.low > *bounds.high)
        std::swap(bounds.low, bounds.high);
      const std::uint64_t wanted = random.below(400);
      for (const bool backward : {false, true}) {
        const Parts parts = scan_in_parts(model, version, bounds, backward, wanted, random);
        rests += parts.rest ? 1 : 0;
        bytes += parts.bytes;
        bytes_of_all += model.view().sorted_end() - model.view().geometry().sorted_begin;
        ASSERT_EQ(parts.pairs, expected_items(model, version, bounds))
            << "at " << version << (backward ? " backward" : " forward") << " from "
            << testing::PrintToString(bounds.low) << " to " << testing::PrintToString(bounds.high)
            << " by " << wanted << " bytes";
      }
    }
  });
  EXPECT_GT(rests, 1000u);
  EXPECT_LT(bytes, bytes_of_all / 2);
}

// The short way of a short scan is not always open; where it is, it leads to the same items.
TEST(LeafScan, TakesTheFirstFewItemsTheShortWay) {
  base::Random random(base::seed_from_environment(42));
  std::uint64_t ways = 0;
  for_many_leaves(random, [&](const LeafModel& model) {
    for (int round = 0; round < 20; ++round) {
      const std::uint64_t version = model.newest_version();
      const auto few = static_cast<std::uint32_t>(random.between(1, LeafScan::kFew));
      const std::string bound = random_bound(model, random).value_or(model.key(random));
      SearchKey low;
      low.assign(bound);
      const LeafProbe probe = probe_leaf(model.view(), low, best_search_kit());
      Item items[LeafScan::kFew];
      if (!LeafScan::take_few(model.view(), low, probe, few, items)) continue;
      ++ways;
      Pairs pairs;
      for (std::uint32_t i = 0; i < few; ++i) pairs.emplace_back(items[i].key, items[i].value);
      Pairs expected = expected_items(model, version, {bound, std::nullopt});
      ASSERT_GE(expected.size(), few);
      expected.resize(few);
      ASSERT_EQ(pairs, expected) << few << " items from " << bound;
    }
  });
  EXPECT_GT(ways, 100u);
}

// Where a leaf says that it has no floor, another way must be taken; that is rare where it has one.
TEST(LeafScan, BeginsAtTheFloor) {
  base::Random random(base::seed_from_environment(43));
  std::uint64_t floors = 0;
  std::uint64_t missed = 0;
  for_many_leaves(random, [&](const LeafModel& model) {
    for (int round = 0; round < 20; ++round) {
      const std::uint64_t version = random.between(LeafModel::kCreated, model.newest_version() + 1);
      const std::string bound = random_bound(model, random).value_or(model.key(random));
      std::optional<std::string> high = random_bound(model, random);
      if (high && *high <= bound) high.reset();
      const auto items = model.at(version);
      auto floor = items.upper_bound(bound);
      const bool exists = floor != items.begin();
      SearchKey key;
      SearchKey high_key;
      key.assign(bound);
      if (high) high_key.assign(*high);
      LeafScan scan;
      if (!scan.begin_at_floor(model.view(), version, best_search_kit(), key,
                               high ? &high_key : nullptr)) {
        missed += exists ? 1 : 0;
        continue;
      }
      ++floors;
      ASSERT_TRUE(exists) << testing::PrintToString(bound) << " has no floor at " << version;
      --floor;
      ASSERT_EQ(take_all(scan, version, false, random),
                expected_items(model, version, {floor->first, high}))
          << "at " << version << " from the floor of " << testing::PrintToString(bound) << " to "
          << testing::PrintToString(high);
    }
  });
  EXPECT_GT(floors, 1000u);
  EXPECT_LT(missed * 10, floors);
}

TEST(LeafScan, NamesTheVersionOfEachItem) {
  LeafModel model({});
  model.build({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  ASSERT_TRUE(model.append("b", "new"));
  ASSERT_TRUE(model.append("bb", "between"));
  ASSERT_TRUE(model.append("b", "newer"));
  LeafScan scan;
  scan.begin(model.view(), LeafModel::kCreated + 4, best_search_kit(), nullptr, nullptr);
  Item items[8];
  std::uint64_t out_of_line = 0;
  ASSERT_EQ(scan.take(items, 8, out_of_line), 4u);
  EXPECT_EQ(items[0].version, LeafModel::kCreated);
  EXPECT_EQ(items[1].value, "new");
  EXPECT_EQ(items[1].version, LeafModel::kCreated + 2);
  EXPECT_EQ(items[2].version, LeafModel::kCreated + 4);
  EXPECT_EQ(items[3].key, "c");
}

TEST(LeafScan, SaysWhichValuesLieElsewhere) {
  const Geometry g = Geometry::of({});
  NodeBuffer buffer(g);
  const std::string ref(16, 'r');
  std::vector<Record> records{make_record("a", "1", false), make_record("b", ref, true),
                              make_record("c", "3", false), make_record("d", ref, true)};
  build_leaf(buffer.data(), g, records, {});
  Item items[4];
  std::uint64_t out_of_line = 0;
  LeafScan scan;
  scan.begin(buffer.view(), kNewest, best_search_kit(), nullptr, nullptr);
  EXPECT_EQ(scan.take(items, 4, out_of_line), 4u);
  EXPECT_EQ(out_of_line, 0b1010u);
  scan.begin(buffer.view(), kNewest, best_search_kit(), nullptr, nullptr);
  EXPECT_EQ(scan.take_back(items, 3, out_of_line), 3u);
  EXPECT_EQ(out_of_line, 0b101u);
}

}  // namespace
}  // namespace espalier::tree
