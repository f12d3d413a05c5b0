// SPDX-License-Identifier: Apache-2.0
// Groups out of lists: communities, merges against a plain search, what groups must be whatever the
// lists are, and that they save rows.
#include "kinds/embedding/greedy_groups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "kinds/embedding/community_merges.hpp"
#include "kinds/embedding/memo_numbering.hpp"
#include "kinds/embedding/review_lists.hpp"

namespace espalier::embedding {
namespace {

using Ids = std::vector<std::uint32_t>;

QueryLists lists_of(const std::vector<std::pair<std::uint32_t, Ids>>& all) {
  QueryLists lists;
  for (const auto& [weight, ids] : all) lists.add(ids, weight);
  return lists;
}

GroupLists groups_of(const QueryLists& lists, std::uint32_t items, const GroupingOptions& options) {
  return greedy_groups(lists, find_communities(lists, items), options);
}

std::vector<Ids> as_lists(const GroupLists& groups) {
  std::vector<Ids> all;
  auto at = groups.rows.begin();
  for (const std::uint8_t size : groups.sizes) {
    all.emplace_back(at, at + size);
    at += size;
  }
  return all;
}

/// Lists of up to 30 of some items, with repeated ids.
QueryLists random_lists(std::uint32_t items, std::size_t count, base::Random& random) {
  QueryLists lists;
  for (std::size_t i = 0; i < count; ++i) {
    Ids ids;
    const auto begin = static_cast<std::uint32_t>(random.below(items));
    for (std::uint64_t left = random.below(30); left != 0; --left) {
      ids.push_back((begin + static_cast<std::uint32_t>(random.below(random.below(items) + 1))) %
                    items);
    }
    lists.add(ids, 1 + static_cast<std::uint32_t>(random.below(100)));
  }
  return lists;
}

TEST(GreedyGroups, MergeWhatIsAskedForTogether) {
  const QueryLists lists =
      lists_of({{10, {7, 3}}, {100, {1, 2, 5}}, {1, {7, 8}}, {50, {1, 2, 5, 9}}, {3, {4}}});
  const auto made = [&](std::uint32_t rows_max, std::uint64_t sums) {
    return as_lists(groups_of(lists, 10, {rows_max, sums}));
  };
  EXPECT_EQ(made(8, 0), std::vector<Ids>{});
  EXPECT_EQ(made(8, 1), (std::vector<Ids>{{1, 2}}));
  EXPECT_EQ(made(8, 4), (std::vector<Ids>{{1, 2, 5}}));
  EXPECT_EQ(made(8, 5), (std::vector<Ids>{{1, 2, 5}, {3, 7}}));
  EXPECT_EQ(made(2, 5).size(), 3u) << "pairs";
  const std::vector<Ids> all = made(8, 1000);
  EXPECT_EQ(all, (std::vector<Ids>{{1, 2, 5, 9}, {3, 7, 8}})) << "4 is alone";
}

TEST(GreedyGroups, HaveNoListsOrEmptyOnes) {
  EXPECT_TRUE(groups_of({}, 100, {8, 1000}).sizes.empty());
  EXPECT_TRUE(groups_of({}, 0, {8, 1000}).sizes.empty());
  EXPECT_TRUE(groups_of(lists_of({{1, {}}, {5, {3}}, {5, {3, 3, 3}}}), 4, {8, 9}).sizes.empty());
}

TEST(GreedyGroups, CommunitiesHaveEachItemOnceAndNoMoreThanTheyMay) {
  base::Random random(11);
  for (const std::uint32_t items_max : {2u, 16u, 128u}) {
    const QueryLists lists = random_lists(1000, 300, random);
    const Communities found = find_communities(lists, 1000, {items_max, 3, 20});
    std::map<std::uint32_t, std::uint32_t> sizes;
    const std::set<std::uint32_t> met(lists.ids().begin(), lists.ids().end());
    for (std::uint32_t item = 0; item < 1000; ++item) {
      const std::uint32_t community = found.of_item[item];
      EXPECT_EQ(community != Communities::kNone, met.contains(item)) << item;
      if (community == Communities::kNone) continue;
      EXPECT_LT(community, found.count);
      EXPECT_LE(++sizes[community], items_max);
    }
  }
}

// The merges of a community, written down plainly: all pairs of groups, each time anew.
std::vector<Merge> plain_merges(std::uint32_t items, const std::vector<ListPart>& parts,
                                std::uint32_t rows_max) {
  std::vector<Ids> groups(items);
  for (std::uint32_t i = 0; i < items; ++i) groups[i] = {i};
  std::vector<Merge> merges;
  for (;;) {
    Merge best{0, 0, 0, 0};
    for (std::uint32_t a = 0; a < items; ++a) {
      for (std::uint32_t b = a + 1; b < items; ++b) {
        const std::size_t rows = groups[a].size() + groups[b].size();
        if (groups[a].empty() || groups[b].empty() || rows > rows_max) continue;
        const auto size = [&](std::uint32_t i) {
          return group_sums(static_cast<std::uint32_t>(groups[i].size()));
        };
        const std::uint32_t sums = group_sums(static_cast<std::uint32_t>(rows)) - size(a) - size(b);
        std::uint64_t benefit = 0;
        for (const ListPart& part : parts) {
          const auto has = [&](std::uint32_t item) { return part.items.has(item); };
          if (std::ranges::any_of(groups[a], has) && std::ranges::any_of(groups[b], has)) {
            benefit += part.weight;
          }
        }
        const double gain = static_cast<double>(benefit) / sums;
        if (gain > best.gain) {
          best = {gain, sums, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b)};
        }
      }
    }
    if (best.gain == 0) return merges;
    groups[best.first].insert(groups[best.first].end(), groups[best.second].begin(),
                              groups[best.second].end());
    groups[best.second].clear();
    merges.push_back(best);
  }
}

TEST(GreedyGroups, MergesAreThoseOfAPlainSearch) {
  base::Random random(12);
  for (int round = 0; round < 30; ++round) {
    const auto items = static_cast<std::uint32_t>(2 + random.below(20));
    std::vector<ListPart> parts;
    for (std::uint64_t left = random.below(40); left != 0; --left) {
      ListPart part{{}, random.below(1'000'000) + 1};  // so that hardly two gains are the same
      while (part.items.size() < 2) part.items.add(static_cast<std::uint32_t>(random.below(items)));
      for (int i = 0; i < 3; ++i) part.items.add(static_cast<std::uint32_t>(random.below(items)));
      parts.push_back(part);
    }
    const std::vector<Merge> wanted = plain_merges(items, parts, 5);
    const std::vector<Merge> found = merges_of(items, parts, 5);
    ASSERT_EQ(found.size(), wanted.size()) << round;
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].gain, wanted[i].gain) << round << ", " << i;
      EXPECT_EQ(found[i].sums, wanted[i].sums) << round << ", " << i;
    }
  }
}

TEST(GreedyGroups, AreGroupsWithinTheirRoomWhateverTheListsAre) {
  base::Random random(13);
  for (int round = 0; round < 8; ++round) {
    const auto items = static_cast<std::uint32_t>(1 + random.below(1000));
    const QueryLists lists = random_lists(items, 200, random);
    GroupingOptions options{static_cast<std::uint32_t>(2 + random.below(7)), random.below(3000)};
    const GroupLists groups = groups_of(lists, items, options);
    EXPECT_EQ(fault_of_groups(groups.get(), items), std::nullopt);
    EXPECT_LE(groups.sums(), options.sums_max);
    for (const std::uint8_t size : groups.sizes) EXPECT_LE(size, options.group_rows_max);
    EXPECT_EQ(as_lists(groups_of(lists, items, options)), as_lists(groups)) << "the same again";
    const ReadRows alone = rows_to_read(lists, {}, items);
    const ReadRows read = rows_to_read(lists, groups.get(), items);
    EXPECT_EQ(alone.rows, alone.ids);
    EXPECT_EQ(read.ids, alone.ids);
    EXPECT_LE(read.rows, alone.rows);
    options.sums_max *= 2;
    EXPECT_LE(rows_to_read(lists, groups_of(lists, items, options).get(), items).rows, read.rows)
        << "more room, fewer rows to read";
  }
}

TEST(GreedyGroups, SaveRowsOfListsThatAreHeldOut) {
  constexpr std::uint32_t kItems = 5000;
  const ReviewLists lists = review_lists(kItems, 5);
  const Communities communities = find_communities(lists.learned, kItems);
  double before = 0;
  for (const double ratio : {0.1, 0.25, 1.0}) {
    const std::uint64_t sums = sums_for_ratio(kItems, 256, 64, ratio);
    const GroupLists groups = greedy_groups(lists.learned, communities, {8, sums});
    EXPECT_LE(groups.sums(), sums);
    EXPECT_GT(groups.sums() + 300, sums) << "room is used";
    const double saved = rows_to_read(lists.held_out, groups.get(), kItems).saved();
    EXPECT_GT(saved, before + 0.02) << ratio;
    before = saved;
  }
}

TEST(ReviewLists, HaveTheShapeOfReviews) {
  const ReviewLists lists = review_lists(10'000, 9);
  const ReviewLists again = review_lists(10'000, 9);
  EXPECT_TRUE(std::ranges::equal(lists.learned.ids(), again.learned.ids()));
  EXPECT_FALSE(std::ranges::equal(lists.learned.ids(), review_lists(10'000, 10).learned.ids()));
  EXPECT_GT(lists.learned.size(), lists.held_out.size());
  std::uint64_t learned = 0;
  std::uint64_t held_out = 0;
  for (std::size_t i = 0; i < lists.learned.size(); ++i) {
    const auto ids = lists.learned.list(i);
    EXPECT_FALSE(ids.empty());
    EXPECT_LT(ids.back(), 10'000u);
    EXPECT_TRUE(std::ranges::adjacent_find(ids, std::greater_equal()) == ids.end());
    learned += lists.learned.weight(i);
  }
  for (std::size_t i = 0; i < lists.held_out.size(); ++i) held_out += lists.held_out.weight(i);
  EXPECT_NEAR(static_cast<double>(learned) / static_cast<double>(learned + held_out), 0.8, 0.05);
  const auto mean =
      static_cast<double>(lists.learned.ids().size()) / static_cast<double>(lists.learned.size());
  EXPECT_GT(mean, 40);
  EXPECT_LT(mean, 60);
  EXPECT_EQ(review_categories().size(), 6u);
}

TEST(QueryLists, RoomForSumsHasTheirNumberingTakenOff) {
  EXPECT_EQ(sums_for_ratio(1000, 256, 64, 0.25), 1000 * (64 - 8) / 256);
  EXPECT_EQ(sums_for_ratio(1000, 256, 64, 0), 0u);
  EXPECT_EQ(sums_for_ratio(1000, 68, 64, 0.1), 0u) << "not even room for the numbers";
  EXPECT_EQ(sums_for_ratio(0, 256, 64, 1), 0u);
}

TEST(QueryLists, RepeatedIdsAndIdsWithoutAGroupAreReadEach) {
  GroupLists groups;
  groups.add(Ids{1, 2, 3});
  const QueryLists lists = lists_of({{2, {1, 2, 3, 3, 9}}, {1, {}}, {1, {2}}});
  const ReadRows read = rows_to_read(lists, groups.get(), 10);
  EXPECT_EQ(read.ids, 11u);
  EXPECT_EQ(read.rows, 2 * 3 + 1u);
  EXPECT_EQ(read.sums, 2u) << "one row of a group is no sum";
}

TEST(QueryLists, LinesAreThoseOfRowsOfSumsAndOfPlaces) {
  const ReadRows read{.ids = 10, .rows = 7, .sums = 2};
  EXPECT_EQ(read.lines(256, 64, true), 5u * 4 + 2 * 4);
  EXPECT_EQ(read.lines(256, 64, false), 5u * 4 + 2 * 4 + 10);
  EXPECT_NEAR(read.lines_saved(256, 64, true), 1 - 28.0 / 40, 1e-12);
  EXPECT_EQ(read.lines(68, 64, false), 5u * 2 + 2 * 4 + 10) << "sums are fp32";
  EXPECT_NEAR(read.lines_saved(68, 64, false), 1 - 28.0 / 20, 1e-12) << "more than without groups";
  EXPECT_EQ(ReadRows().lines_saved(256, 64, false), 0);
}

}  // namespace
}  // namespace espalier::embedding
