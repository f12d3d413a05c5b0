// SPDX-License-Identifier: Apache-2.0
// Gathers beside replacements and appends: rows are whole, and what an append counts is there.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/barrier.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"
#include "memory/size_class.hpp"

namespace espalier::embedding {
namespace {

constexpr int kReplacements = base::kThreadSanitizer ? 5000 : 100'000;

TEST(EmbeddingConcurrency, GathersSeeWholeRows) {
  for (const EmbeddingType type : kAllTypes)
    EXPECT_TRUE(gathers_see_whole_rows(type, kReplacements));
}

TEST(EmbeddingConcurrency, ARowThatIsReplacedMidwayIsReadAgain) {
  EXPECT_TRUE(row_replaced_midway_is_whole());
}

TEST(EmbeddingConcurrency, RowsAreThereOnceTheyAreCounted) {
  EmbeddingStore store;
  const auto table = store.create({512});
  const auto row = row_of(*table, 5);
  std::atomic<bool> over{false};
  bool whole = true;
  std::vector<std::jthread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&] {
      for (bool good = true; good && table->pages() < 4;) {
        good = table->append(row).has_value();
        EXPECT_TRUE(good);
      }
      over = true;
    });
  }
  OwnWork work{{0}, {0}, {}, {}, Reduction::sum};
  std::vector<float> results(512);
  while (!over) {
    const std::uint64_t rows = table->rows();
    if (rows == 0) continue;
    work.ids[0] = static_cast<std::uint32_t>(rows - 1);
    ASSERT_TRUE(reduce(*table, work.get(), results));
    for (const float value : results) whole &= value == 5;
  }
  writers.clear();  // waits for them
  EXPECT_TRUE(whole);
  EXPECT_EQ(audit(*table), std::vector<std::string>{});
  EXPECT_EQ(store.pool.stats(memory::relation_class_of(kPageBytes)).in_use, table->pages())
      << "pages that an append took and did not need";
}

}  // namespace
}  // namespace espalier::embedding
