// SPDX-License-Identifier: Apache-2.0
// Groups of an embedding table: their numbering, what is refused, and reductions that read sums
// against the plain reference.
#include "kinds/embedding/memo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catalog/catalog.hpp"
#include "kinds/embedding/memo_planner.hpp"
#include "kinds/embedding/testing/grouped_rows.hpp"
#include "memory/size_class.hpp"

namespace espalier::embedding {
namespace {

constexpr Reduction kSumming[] = {Reduction::sum, Reduction::mean, Reduction::inner_product};

std::vector<const GatherKit*> kits_here() { return {&scalar_gather(), &gather_kit(base::isa())}; }

TEST(MemoNumbering, EachSumHasANumberOfItsOwn) {
  base::Random random(1);
  const OwnGroups groups = random_groups(500, random);
  GroupSizes counted;
  EXPECT_EQ(counted.add(std::span(groups.sizes).first(7)), std::nullopt);
  EXPECT_EQ(counted.add(std::span(groups.sizes).subspan(7)), std::nullopt);
  EXPECT_EQ(counted.fault_with(groups.rows.size()), std::nullopt);
  const MemoNumbering numbering(counted);
  EXPECT_EQ(numbering.groups(), groups.sizes.size());
  EXPECT_EQ(numbering.members(), groups.rows.size());
  std::map<std::uint32_t, std::uint32_t> of_size;
  for (const std::uint8_t size : groups.sizes) ++of_size[size];
  std::set<std::uint64_t> sums;
  std::uint32_t before = 0;
  std::uint32_t members = 0;
  for (std::uint32_t number = 0; number < numbering.groups(); ++number) {
    const NumberedGroup group = numbering.group(number);
    EXPECT_EQ(group.members, members);
    members += group.rows;
    EXPECT_GE(group.rows, before) << "groups of one size lie together";
    before = group.rows;
    --of_size[group.rows];
    for (std::uint32_t member = 0; member < 8; ++member) {
      const std::uint32_t place = place_in(number, member);
      EXPECT_EQ(group_of_place(place), number);
      EXPECT_EQ(bit_of_place(place), 1u << member);
      EXPECT_EQ(numbering.is_place(place), member < group.rows);
    }
    for (std::uint32_t mask = 1; mask < std::uint32_t{1} << group.rows; ++mask) {
      if (std::has_single_bit(mask)) continue;
      ASSERT_LT(rank_of_mask(mask), group_sums(group.rows));
      EXPECT_TRUE(sums.insert(std::uint64_t{group.sums} + rank_of_mask(mask)).second);
    }
  }
  EXPECT_FALSE(numbering.is_place(place_in(numbering.groups(), 0)));
  EXPECT_FALSE(numbering.is_place(kNoPlace & ~kPlaceBit));
  EXPECT_EQ(sums.size(), numbering.sums());
  EXPECT_EQ(*sums.rbegin() + 1, numbering.sums());
  for (const auto& [size, left] : of_size) EXPECT_EQ(left, 0u) << size;
}

TEST(MemoNumbering, RefusesWhatIsNoGrouping) {
  const auto fault = [](std::vector<std::uint8_t> sizes, std::vector<std::uint32_t> rows,
                        std::uint64_t there = 10) {
    return fault_of_groups({sizes, rows}, there).value_or("");
  };
  EXPECT_EQ(fault({}, {}), "");
  EXPECT_EQ(fault({2, 3}, {0, 9, 1, 2, 3}), "");
  EXPECT_EQ(fault({1}, {0}), "group 0 has 1 rows, not 2 to 8");
  EXPECT_EQ(fault({2, 9}, {0, 1}), "group 1 has 9 rows, not 2 to 8");
  EXPECT_EQ(fault({2}, {0}), "groups have 2 rows together, and there are 1 ids");
  EXPECT_EQ(fault({2}, {0, 1, 2}), "groups have 2 rows together, and there are 3 ids");
  EXPECT_EQ(fault({2}, {0, 10}), "id 10 at place 1 is not below the table's 10 rows");
  EXPECT_EQ(fault({2, 2}, {0, 1, 2, 0}), "id 0 at place 3 is in a group already");
  EXPECT_EQ(fault({2}, {0, 1}, kGroupedTableRowsMax + 1),
            "a table of more than 2^31 rows has no groups");
}

TEST(EmbeddingGroups, SumsAreOfTheirRows) { EXPECT_TRUE(sums_are_of_their_rows()); }

TEST(EmbeddingGroups, SumsFollowDurableReplacements) {
  EXPECT_TRUE(sums_follow_durable_replacements());
}

TEST(EmbeddingGroups, SumsFollowReplacements) { EXPECT_TRUE(sums_follow_replacements()); }

TEST(EmbeddingGroups, AgreeWithRowsAloneWithinTheStatedError) {
  base::Random random(3);
  EmbeddingStore store;
  for (const EmbeddingType type : kAllTypes) {
    for (const std::uint32_t dimension : {8u, 72u, 1024u}) {
      const std::uint32_t row_count = dimension == 1024 ? 60 : 700;
      const auto table = store.create({dimension, type});
      const auto rows = random_rows(*table, row_count, random);
      ASSERT_TRUE(table->append(rows));
      const OwnGroups groups = random_groups(row_count / 2, random);
      ASSERT_TRUE(group_rows(*table, groups.get()));
      for (const Reduction reduction : kSumming) {
        const OwnWork work = grouped_work(reduction, groups, dimension, row_count, 12, random);
        for (const GatherKit* kit : kits_here()) {
          const auto found = reduced(*table, work, *kit);
          ASSERT_TRUE(found) << describe(found.error());
          EXPECT_TRUE(agree_within_error(type, dimension, rows, work, *found))
              << kit->name << " type " << static_cast<int>(type) << " dimension " << dimension
              << " reduction " << static_cast<int>(reduction);
        }
      }
      EXPECT_EQ(audit(*table), std::vector<std::string>{});
      ASSERT_TRUE(store.catalog.drop("t"));
    }
  }
}

// Max, min and weights are of rows, to the bit.
TEST(EmbeddingGroups, OtherReductionsReadRows) {
  base::Random random(4);
  EmbeddingStore store;
  const auto table = store.create({16});
  const auto rows = random_rows(*table, 300, random);
  ASSERT_TRUE(table->append(rows));
  const OwnGroups groups = random_groups(200, random);
  ASSERT_TRUE(group_rows(*table, groups.get()));
  for (const Reduction reduction : kAllReductions) {
    const bool product = reduction == Reduction::inner_product;
    OwnWork work = grouped_work(reduction, groups, 16, 300, 20, random);
    if (reduction == Reduction::mean) continue;
    if (reduction == Reduction::sum || product) work.weights.assign(work.ids.size(), 0.5F);
    const auto found = reduced(*table, work, scalar_gather());
    EXPECT_TRUE(agree(found.value(), reference(EmbeddingType::fp32, 16, rows, work), product));
  }
}

// The same ids and groups come to the same bits, however bags are cut into steps.
TEST(EmbeddingGroups, BagsOfAnyLengthAreTheirOwn) {
  base::Random random(5);
  EmbeddingStore store;
  for (const EmbeddingType type : {EmbeddingType::fp32, EmbeddingType::int8}) {
    const auto table = store.create({8, type});
    const auto rows = random_rows(*table, 2000, random);
    ASSERT_TRUE(table->append(rows));
    const OwnGroups groups = random_groups(1500, random);
    ASSERT_TRUE(group_rows(*table, groups.get()));
    OwnWork all;
    std::vector<float> alone;
    for (const std::uint64_t length : {0, 1, 2, 63, 64, 65, 511, 512, 513, 0, 3000, 1, 0}) {
      OwnWork one = random_work(Reduction::sum, false, 8, 2000, 1, 0, random);
      for (std::uint64_t i = 0; i < length; ++i) {
        one.ids.push_back(groups.rows[random.below(groups.rows.size())]);
      }
      const auto found = reduced(*table, one, scalar_gather()).value();
      EXPECT_TRUE(agree_within_error(type, 8, rows, one, found)) << length;
      all.offsets.push_back(static_cast<std::uint32_t>(all.ids.size()));
      all.ids.insert(all.ids.end(), one.ids.begin(), one.ids.end());
      alone.insert(alone.end(), found.begin(), found.end());
    }
    for (int i = 0; i < 1000; ++i)
      all.offsets.push_back(static_cast<std::uint32_t>(all.ids.size()));
    alone.resize(alone.size() + 8000);
    EXPECT_EQ(reduced(*table, all, scalar_gather()).value(), alone);
    ASSERT_TRUE(store.catalog.drop("t"));
  }
}

/// Eight rows a group, and bags of whole groups.
struct WholeGroups {
  explicit WholeGroups(std::uint32_t rows) {
    for (std::uint32_t row = 0; row < rows; row += 8) {
      std::vector<std::uint32_t> group(8);
      std::iota(group.begin(), group.end(), row);
      groups.add(group);
      if (row % 1600 == 0) work.offsets.push_back(static_cast<std::uint32_t>(work.ids.size()));
      work.ids.insert(work.ids.end(), group.begin(), group.end());
    }
  }
  OwnGroups groups;
  OwnWork work;
};

/// Rows that sums stand for in the reduction of these bags, which is checked.
std::uint64_t rows_saved_by(const EmbeddingTable& table, std::span<const std::byte> rows,
                            const OwnWork& work) {
  std::vector<float> results(work.offsets.size() * table.options().dimension);
  const EmbeddingNumbers before = table.all_numbers();
  EXPECT_TRUE(reduce(table, work.get(), results));
  EXPECT_TRUE(
      agree_within_error(table.options().type, table.options().dimension, rows, work, results));
  const EmbeddingNumbers now = table.all_numbers();
  EXPECT_EQ(now.rereads, before.rereads) << "nobody waits";
  EXPECT_EQ(now.rows_gathered - before.rows_gathered + now.rows_saved - before.rows_saved,
            work.ids.size());
  return now.rows_saved - before.rows_saved;
}

// Groups are as they were until all sums of the new ones are there, and who has the old ones when
// they go reads rows: of whole groups a step has many more rows then.
TEST(EmbeddingGroups, ComeInPiecesAndAllAtOnce) {
  base::Random random(15);
  EmbeddingStore store(std::uint64_t{128} << 20);
  for (const EmbeddingType type : {EmbeddingType::fp32, EmbeddingType::bf16}) {
    const auto table = store.create({64, type});
    const auto rows = random_rows(*table, 4000, random);
    ASSERT_TRUE(table->append(rows));
    const WholeGroups of(4000);
    Grouping grouping(*table, of.groups.get());
    std::uint64_t computed = 0;
    std::uint64_t bytes = 0;
    int pieces = 1;
    for (; grouping.step().value(); ++pieces) {
      const EmbeddingNumbers now = table->all_numbers();
      EXPECT_GE(now.grouping_computed, computed);
      EXPECT_GE(now.group_bytes, bytes);
      computed = now.grouping_computed;
      bytes = now.group_bytes;
      if (pieces % 50 == 0) {
        EXPECT_EQ(rows_saved_by(*table, rows, of.work), 0u);
      }
    }
    EXPECT_GT(pieces, 100) << "between which replacements go on";
    EXPECT_GT(computed, 400u);
    EXPECT_EQ(table->all_numbers().grouping_groups, 0u);
    EXPECT_EQ(table->all_numbers().groups, 500u);
    EXPECT_EQ(table->all_numbers().group_bytes, bytes);
    EXPECT_EQ(table->memo()->number(), grouping.number());
    EXPECT_EQ(rows_saved_by(*table, rows, of.work), 4000u / 8 * 7);
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
    // Who has the old sums still reads rows.
    std::vector<float> results(of.work.offsets.size() * 64);
    Reducer reducer(*table, of.work.get(), results);
    ASSERT_TRUE(reducer.begin());
    ASSERT_TRUE(group_rows(*table, {}));
    while (reducer.step().value()) {
    }
    EXPECT_TRUE(agree_within_error(type, 64, rows, of.work, results));
    EXPECT_EQ(reducer.counts().rows, 4000u);
    EXPECT_EQ(reducer.counts().rereads, 0u) << "nobody waits";
    EXPECT_EQ(rows_saved_by(*table, rows, of.work), 0u);
    ASSERT_TRUE(store.catalog.drop("t"));
  }
}

// Whenever a grouping is left: the groups stay, and its memory goes back.
TEST(EmbeddingGroups, ThatAreLeftAreUndone) {
  EmbeddingStore store;
  const auto table = store.create({64});
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(table->append(row_of(*table, 1)));
  OwnGroups first;
  first.add({1, 2});
  const std::uint32_t number = group_rows(*table, first.get()).value();
  const EmbeddingNumbers before = table->all_numbers();
  const auto pages = [&] { return store.pool.stats(memory::relation_class_of(kPageBytes)).in_use; };
  const std::uint64_t pages_before = pages();
  const WholeGroups of(400);
  bool more = true;
  int left = 0;
  for (; more; ++left) {
    Grouping grouping(*table, of.groups.get());
    for (int i = 0; i < left && more; ++i) more = grouping.step().value();
    if (!more) break;
    Grouping other(*table, first.get());
    if (left != 0) {
      EXPECT_EQ(other.step().error().error.code, Code::busy);
    }
    ASSERT_TRUE(table->replace(9, row_of(*table, 2)));
  }
  EXPECT_GT(left, 6);
  EXPECT_EQ(table->memo()->numbering().groups(), 50u) << "the last one came to its end";
  EXPECT_NE(group_rows(*table, first.get()).value(), number);
  const EmbeddingNumbers now = table->all_numbers();
  EXPECT_EQ(now.group_bytes, before.group_bytes);
  EXPECT_EQ(pages(), pages_before);
  // What is wrong is found on the way, and undone likewise.
  OwnGroups wrong = of.groups;
  wrong.rows.back() = 7;
  EXPECT_EQ(group_rows(*table, wrong.get()).error().words,
            "id 7 at place 399 is in a group already");
  wrong.rows.back() = 400;
  EXPECT_EQ(group_rows(*table, wrong.get()).error().words,
            "id 400 at place 399 is not below the table's 400 rows");
  EXPECT_EQ(table->memo()->numbering().groups(), 1u);
  EXPECT_EQ(pages(), pages_before);
  EXPECT_EQ(audit(*table), std::vector<std::string>{});
  Grouping late(*table, of.groups.get());
  ASSERT_TRUE(late.step().value());
  ASSERT_TRUE(store.catalog.drop("t"));
  EXPECT_EQ(late.step().error().error.code, Code::not_found);
}

// A replacement may compute sums from the first piece of a grouping on.
TEST(EmbeddingGroups, MayHaveSumsFromTheFirstPieceOn) {
  EmbeddingStore store;
  const auto table = store.create({128});
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(table->append(row_of(*table, 1)));
  const WholeGroups of(16);
  EXPECT_FALSE(table->may_have_sums());
  {
    Grouping left(*table, of.groups.get());
    ASSERT_TRUE(left.step().value());
    EXPECT_TRUE(table->may_have_sums());
  }
  EXPECT_FALSE(table->may_have_sums());
  ASSERT_TRUE(group_rows(*table, of.groups.get()));
  EXPECT_TRUE(table->may_have_sums());
  ASSERT_TRUE(group_rows(*table, {}));
  EXPECT_FALSE(table->may_have_sums());
}

// Ids that all meet in one place of the planner's table, if its multiplier is known.
TEST(MemoPlanner, IdsCannotBeChosenToMeet) {
  constexpr std::uint32_t kKnown = 0x9E3779B1;
  constexpr std::uint32_t kGroups = 1 << 16;
  EmbeddingStore store;
  const auto table = store.create({8});
  const std::vector<std::byte> row = row_of(*table, 1);
  std::vector<std::byte> some;
  for (int i = 0; i < 1024; ++i) some.insert(some.end(), row.begin(), row.end());
  OwnGroups groups;
  for (std::uint32_t i = 0; i < 2 * kGroups; ++i) {
    if (i % 1024 == 0) {
      ASSERT_TRUE(table->append(some));
    }
    if (i % 2 == 0) groups.add({i, i + 1});
  }
  ASSERT_TRUE(group_rows(*table, groups.get()));
  std::vector<std::uint32_t> ids;
  for (std::uint32_t group = 0; group < kGroups; ++group) {
    if ((group * kKnown) >> 22 == 5) ids.push_back(2 * group);
  }
  ASSERT_GT(ids.size(), 40u);
  ids.resize(std::min<std::size_t>(ids.size(), MemoPlanner::kPieceIds));
  const auto probes = [&](std::uint32_t multiplier) {
    MemoPlanner planner(*table->memo(), table->rows(), {true, false}, multiplier);
    EXPECT_EQ(planner.plan(ids), std::nullopt);
    EXPECT_EQ(planner.planned().size(), ids.size());
    return planner.probes();
  };
  EXPECT_GT(probes(kKnown), ids.size() * (ids.size() - 1) / 2);
  std::uint64_t least = ~std::uint64_t{0};
  base::Random random(16);
  for (int i = 0; i < 8; ++i) {
    least = std::min(least, probes(static_cast<std::uint32_t>(random()) | 1));
  }
  EXPECT_LT(least, ids.size() * 3);
  EXPECT_EQ(planner_multiplier() % 2, 1u);
  EXPECT_EQ(planner_multiplier(), planner_multiplier());
}

TEST(EmbeddingGroups, RenumberedIdsNameTheSameRows) {
  base::Random random(6);
  EmbeddingStore store;
  const auto table = store.create({8});
  const auto rows = random_rows(*table, 300, random);
  ASSERT_TRUE(table->append(rows));
  const OwnGroups groups = random_groups(250, random);
  const std::uint32_t grouping = group_rows(*table, groups.get()).value();
  const auto memo = table->memo();
  for (const Reduction reduction : kAllReductions) {
    const OwnWork work = grouped_work(reduction, groups, 8, 300, 20, random);
    const auto wanted = reduced(*table, work, scalar_gather());
    OwnWork renumbered = work;
    for (std::uint32_t& id : renumbered.ids) {
      if (const std::uint32_t place = memo->place_of(id); place != kNoPlace) id = place | kPlaceBit;
    }
    ReductionWork asked = renumbered.get();
    asked.bags.grouping = grouping;
    std::vector<float> found(wanted->size());
    ASSERT_TRUE(reduce(*table, asked, found));
    EXPECT_EQ(found, wanted.value());
    asked.bags.grouping = grouping + 1;
    EXPECT_EQ(describe(reduce(*table, asked, found).error()),
              "ids are numbered by grouping " + std::to_string(grouping + 1) +
                  ", and the table has grouping " + std::to_string(grouping));
  }
  const std::uint32_t ids[] = {299, kPlaceBit | place_in(memo->numbering().groups(), 0)};
  const std::uint32_t offsets[] = {0};
  std::vector<float> found(8);
  const auto wrong = reduce(*table, {Reduction::sum, {ids, offsets, {}, grouping}}, found);
  EXPECT_EQ(wrong.error().place, 1u);
  ASSERT_TRUE(group_rows(*table, {}));
  EXPECT_EQ(
      describe(reduce(*table, {Reduction::sum, {ids, offsets, {}, grouping}}, found).error()),
      "ids are numbered by grouping " + std::to_string(grouping) + ", and the table has none");
}

TEST(EmbeddingGroups, AreCountedAndGiveTheirMemoryBack) {
  EmbeddingStore store;
  const std::uint64_t before = store.region.taken_bytes();
  const auto page_count = [&] {
    return store.pool.stats(memory::relation_class_of(kPageBytes)).in_use;
  };
  {
    const auto table = store.create({64});
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(table->append(row_of(*table, 1)));
    OwnGroups groups;
    groups.add({1, 2, 3});
    groups.add({7, 5});
    const std::uint32_t first = group_rows(*table, groups.get()).value();
    EmbeddingNumbers now = table->all_numbers();
    EXPECT_EQ(now.groups, 2u);
    EXPECT_EQ(now.grouped_rows, 5u);
    EXPECT_EQ(now.group_bytes, 3 * kPageBytes);
    EXPECT_EQ(now.memory_bytes, kHeaderBytes + 4 * kPageBytes);
    const std::vector<std::uint32_t> ids = {1, 2, 3, 4, 5, 7, 9};
    const std::uint32_t offsets[] = {0};
    std::vector<float> found(64);
    ASSERT_TRUE(reduce(*table, {Reduction::sum, {ids, offsets}}, found));
    EXPECT_EQ(found, std::vector<float>(64, 7));
    now = table->all_numbers();
    EXPECT_EQ(now.rows_gathered, 4u);
    EXPECT_EQ(now.sums_gathered, 2u);
    EXPECT_EQ(now.rows_saved, 3u);
    EXPECT_EQ(group_rows(*table, groups.get()), first + 1) << "another grouping, of the same rows";
    EXPECT_EQ(page_count(), 4u);
    EXPECT_EQ(group_rows(*table, {}), 0u);
    EXPECT_EQ(page_count(), 1u);
    EXPECT_EQ(table->all_numbers().group_bytes, 0u);
    EXPECT_EQ(group_rows(*table, groups.get()), first + 2);
    ASSERT_TRUE(table->append(row_of(*table, 1))) << "rows behind have no group";
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
    ASSERT_TRUE(store.catalog.drop("t"));
    EXPECT_EQ(group_rows(*table, groups.get()).error().error.code, Code::not_found);
  }
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), before);
}

// Ids that were numbered for a table that is no more are none of the one that has its name now.
TEST(EmbeddingGroups, OfAnotherTableHaveOtherNumbers) {
  EmbeddingStore store;
  OwnGroups groups;
  groups.add({1, 2});
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 3; ++i) {
    const auto table = store.create({64});
    for (int row = 0; row < 4; ++row) ASSERT_TRUE(table->append(row_of(*table, 1)));
    numbers.insert(group_rows(*table, groups.get()).value());
    ASSERT_TRUE(store.catalog.drop("t"));
  }
  EXPECT_EQ(numbers.size(), 3u);
}

// Known sizes are refused before the first page is taken.
TEST(EmbeddingGroups, WithoutMemoryStayAsTheyWere) {
  EmbeddingStore store(std::uint64_t{12} << 20);
  const auto table = store.create({64});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(table->append(row_of(*table, static_cast<float>(i))));
  OwnGroups groups;
  groups.add({1, 2});
  const std::uint32_t grouping = group_rows(*table, groups.get()).value();
  const std::uint64_t pages = store.pool.stats(memory::relation_class_of(kPageBytes)).in_use;
  // The new ones are made before the old ones go: there is no room for both.
  EXPECT_EQ(group_rows(*table, groups.get()).error().error.code, Code::out_of_memory);
  EXPECT_EQ(store.pool.stats(memory::relation_class_of(kPageBytes)).in_use, pages);
  Grouping other(*table, groups.get());
  while (other.step()) EXPECT_EQ(table->all_numbers().group_bytes, pages * kPageBytes - kPageBytes);
  EXPECT_EQ(table->memo()->number(), grouping);
  EXPECT_EQ(audit(*table), std::vector<std::string>{});
}

// A NaN or an infinity of a row is in its group's sums, as it is in a sum of rows.
TEST(EmbeddingGroups, SumWhatIsNoNumber) {
  NumberedRows of(8);
  OwnGroups groups;
  groups.add({1, 2, 3});
  ASSERT_TRUE(group_rows(*of.table, groups.get()));
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(of.table->replace(2, row_of(*of.table, kInfinite)));
  EXPECT_EQ(of.sum({1, 2}), kInfinite);
  EXPECT_EQ(of.sum({1, 3}), 4);
  ASSERT_TRUE(of.table->replace(3, row_of(*of.table, -kInfinite)));
  EXPECT_TRUE(std::isnan(of.sum({1, 2, 3})));
  EXPECT_EQ(audit(*of.table), std::vector<std::string>{});
}

}  // namespace
}  // namespace espalier::embedding
