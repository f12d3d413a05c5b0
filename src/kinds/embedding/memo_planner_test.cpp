// SPDX-License-Identifier: Apache-2.0
// Plans of bags against a plain one, of ids as they are, renumbered, and renumbered and sorted.
#include "kinds/embedding/memo_planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "kinds/embedding/testing/grouped_rows.hpp"

namespace espalier::embedding {
namespace {

/// What is read: rows with 0, and sums by their group's number and mask.
using Plan = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Plan sorted(Plan plan) {
  std::ranges::sort(plan);
  return plan;
}

Plan plain_plan(const Memo& memo, const std::vector<std::uint32_t>& ids) {
  Plan plan;
  std::map<std::uint32_t, std::uint32_t> masks;
  for (const std::uint32_t id : ids) {
    const std::uint32_t place = memo.place_of(id);
    if (place == kNoPlace || (masks[group_of_place(place)] & bit_of_place(place)) != 0) {
      plan.emplace_back(id, 0);
    } else {
      masks[group_of_place(place)] |= bit_of_place(place);
    }
  }
  for (const auto& [number, mask] : masks) {
    if (mask == 0) continue;
    const auto member = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (std::has_single_bit(mask)) {
      plan.emplace_back(memo.row_of(memo.numbering().group(number), member), 0);
    } else {
      plan.emplace_back(number, mask);
    }
  }
  return plan;
}

/// As a planner plans it. Its sums come first, and are those of their masks.
Plan plan_of(MemoPlanner& planner, const Memo& memo, const std::vector<std::uint32_t>& ids) {
  EXPECT_EQ(planner.plan(ids), std::nullopt);
  Plan plan;
  for (const PlannedRow& row : planner.planned()) {
    EXPECT_EQ(row.mask != 0, plan.size() < planner.sums());
    plan.emplace_back(row.row, row.mask);
    if (row.mask == 0) continue;
    EXPECT_EQ(row.sum, memo.numbering().group(row.row).sums + rank_of_mask(row.mask));
  }
  return plan;
}

struct PlannedStore {
  explicit PlannedStore(base::Random& random) {
    EXPECT_TRUE(table->append(random_rows(*table, kRows, random)));
    groups = random_groups(250, random);
    EXPECT_TRUE(group_rows(*table, groups.get()));
    memo = table->memo();
  }
  [[nodiscard]] std::vector<std::uint32_t> renumbered(std::vector<std::uint32_t> ids) const {
    for (std::uint32_t& id : ids) {
      if (const std::uint32_t place = memo->place_of(id); place != kNoPlace) id = place | kPlaceBit;
    }
    return ids;
  }

  static constexpr std::uint32_t kRows = 300;
  EmbeddingStore store;
  std::shared_ptr<EmbeddingTable> table = store.create({8});
  OwnGroups groups;
  std::shared_ptr<const Memo> memo;
};

TEST(MemoPlanner, PlansAsAPlainPlanDoes) {
  const std::uint64_t seed = base::seed_from_environment(12);
  base::Random random(seed);
  PlannedStore of(random);
  MemoPlanner ids_planner(*of.memo, PlannedStore::kRows, {true, false});
  MemoPlanner places_planner(*of.memo, PlannedStore::kRows, {true, true});
  std::size_t sums = 0;
  for (int round = 0; round < 300; ++round) {
    const OwnWork work = grouped_work(Reduction::sum, of.groups, 8, PlannedStore::kRows, 1, random);
    auto ids = work.ids;
    if (ids.size() > MemoPlanner::kPieceIds) ids.resize(MemoPlanner::kPieceIds);
    const Plan wanted = sorted(plain_plan(*of.memo, ids));
    const Plan found = plan_of(ids_planner, *of.memo, ids);
    EXPECT_EQ(sorted(found), wanted) << "seed " << seed;
    sums += ids_planner.sums();
    auto places = of.renumbered(ids);
    EXPECT_EQ(plan_of(places_planner, *of.memo, places), found) << "seed " << seed;
    std::ranges::sort(places);
    EXPECT_EQ(sorted(plan_of(places_planner, *of.memo, places)), wanted) << "seed " << seed;
  }
  EXPECT_GT(sums, 300u);
}

// What a slot says is of one piece; numbers of pieces come again at last. With this multiplier all
// groups meet in the first slot, so that one lies where others of its piece were before it.
TEST(MemoPlanner, PiecesHaveNothingOfThoseBefore) {
  base::Random random(5);
  PlannedStore of(random);
  MemoPlanner planner(*of.memo, PlannedStore::kRows, {true, false}, 1);
  const auto row = [&](std::uint32_t group, std::uint32_t member) {
    return of.memo->row_of(of.memo->numbering().group(group), member);
  };
  const auto is_right = [&](const std::vector<std::uint32_t>& ids) {
    return sorted(plan_of(planner, *of.memo, ids)) == sorted(plain_plan(*of.memo, ids));
  };
  ASSERT_TRUE(is_right({row(0, 0), row(1, 0), row(2, 0)}));
  const std::vector<std::uint32_t> others = {row(3, 0), row(4, 0)};
  for (int round = 1; round < 0xFFFF; ++round) ASSERT_EQ(planner.plan(others), std::nullopt);
  ASSERT_TRUE(is_right({row(5, 0), row(6, 0), row(2, 0), row(2, 1)}));
  ASSERT_TRUE(is_right(others));
}

TEST(MemoPlanner, NamesTheFirstIdThatIsWrong) {
  base::Random random(6);
  PlannedStore of(random);
  const std::uint32_t groups = of.memo->numbering().groups();
  const std::uint32_t rows_of_last = of.memo->numbering().group(groups - 1).rows;
  const std::uint32_t rows_of_first = of.memo->numbering().group(0).rows;
  ASSERT_LT(rows_of_first, 8u);
  const std::uint32_t good = kPlaceBit | place_in(groups - 1, rows_of_last - 1);
  MemoPlanner places(*of.memo, PlannedStore::kRows, {true, true});
  MemoPlanner weighted(*of.memo, PlannedStore::kRows, {false, true});
  for (const std::uint32_t wrong :
       {PlannedStore::kRows, kPlaceBit - 1, kPlaceBit | place_in(groups, 0), ~std::uint32_t{0},
        kPlaceBit | place_in(0, rows_of_first), kPlaceBit | place_in(0, 7)}) {
    for (const auto& ids : {std::vector{1u, good, wrong, wrong}, std::vector{wrong, good, 1u},
                            std::vector{kPlaceBit | place_in(0, 0), wrong}}) {
      const auto at = std::ranges::find(ids, wrong) - ids.begin();
      EXPECT_EQ(places.plan(ids), at) << wrong;
      EXPECT_EQ(weighted.plan(ids), at) << wrong;
    }
  }
  EXPECT_EQ(places.plan(std::vector{good, 299u}), std::nullopt);
  EXPECT_EQ(weighted.plan(std::vector{good, 299u}), std::nullopt);
  MemoPlanner ids(*of.memo, PlannedStore::kRows, {true, false});
  EXPECT_EQ(ids.plan(std::vector{0u, good}), 1u) << "a place is no row's number";
}

}  // namespace
}  // namespace espalier::embedding
