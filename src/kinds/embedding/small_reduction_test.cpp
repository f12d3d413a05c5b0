// SPDX-License-Identifier: Apache-2.0
// Reductions of a few rows come to the bits of the plain reference, and of a Reducer.
#include "kinds/embedding/small_reduction.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

namespace espalier::embedding {
namespace {

std::vector<float> small(const EmbeddingTable& table, const OwnWork& work) {
  std::vector<float> results(work.offsets.size() *
                             result_width(work.reduction, table.options().dimension));
  SmallReduction reduction;
  EXPECT_TRUE(reduction.begin(table, work.ids));
  const ReductionCounts counts = reduction.fold(table, work.get(), results);
  EXPECT_EQ(counts.rows, work.ids.size());
  EXPECT_EQ(counts.bags, work.offsets.size());
  return results;
}

TEST(SmallReduction, AgreesWithThePlainReference) {
  const std::uint64_t seed = base::seed_from_environment(7);
  base::Random random(seed);
  int tried = 0;
  for (const EmbeddingType type : kAllTypes) {
    for (const std::uint32_t dimension : {8u, 64u, 1024u}) {
      EmbeddingStore store;
      const auto table = store.create({dimension, type});
      const auto rows = random_rows(*table, 100, random);
      ASSERT_TRUE(table->append(rows));
      for (const Reduction reduction : kAllReductions) {
        const bool weighs = reduction == Reduction::sum || reduction == Reduction::inner_product;
        for (int round = 0; round < 8; ++round) {
          const OwnWork work = random_work(reduction, weighs && round % 2 != 0, dimension, 100,
                                           1 + random.below(3), 6, random);
          if (!SmallReduction::fits(*table, work.get())) continue;
          ++tried;
          const bool products = reduction == Reduction::inner_product;
          const auto found = small(*table, work);
          EXPECT_TRUE(agree(found, reference(type, dimension, rows, work), products))
              << "seed " << seed;
          EXPECT_EQ(found, reduced(*table, work, gather_kit(base::isa())).value());
        }
      }
    }
  }
  EXPECT_GT(tried, 200);
}

TEST(SmallReduction, NamesAnIdThatIsOutOfRange) {
  EmbeddingStore store;
  const auto table = store.create({8});
  ASSERT_TRUE(table->append(row_of(*table, 1)));
  const std::vector<std::uint32_t> ids = {0, 0, 1};
  SmallReduction reduction;
  EXPECT_EQ(describe(reduction.begin(*table, ids).error()),
            "id 1 at place 2 is not below the table's 1 rows");
}

TEST(SmallReduction, TakesWhatIsSmallAndReadsNoSums) {
  EmbeddingStore store;
  const auto table = store.create({64});
  for (int row = 0; row < 4; ++row) {
    ASSERT_TRUE(table->append(row_of(*table, 1)));
  }
  const auto fits = [&](std::size_t ids, std::size_t bags, Reduction reduction = Reduction::sum) {
    OwnWork work;
    work.reduction = reduction;
    work.ids.resize(ids);
    work.offsets.resize(bags);
    if (reduction == Reduction::inner_product) work.vector.resize(64);
    return SmallReduction::fits(*table, work.get());
  };
  EXPECT_TRUE(fits(0, 0));
  EXPECT_TRUE(fits(16, 16));
  EXPECT_FALSE(fits(17, 1));
  EXPECT_FALSE(fits(16, 17)) << "more floats than it has room for";
  EXPECT_TRUE(fits(16, 1024, Reduction::inner_product));
  const std::uint8_t sizes[] = {2};
  const std::uint32_t grouped[] = {0, 3};
  ASSERT_TRUE(group_rows(*table, {sizes, grouped}));
  EXPECT_FALSE(fits(2, 1));
  EXPECT_TRUE(fits(2, 1, Reduction::max));
  ASSERT_TRUE(group_rows(*table, {}));
  EXPECT_TRUE(fits(2, 1));
}

}  // namespace
}  // namespace espalier::embedding
