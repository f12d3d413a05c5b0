// SPDX-License-Identifier: Apache-2.0
// Gathers beside replacements and appends: rows are whole, and what an append counts is there.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/barrier.hpp"
#include "kinds/embedding/testing/grouped_rows.hpp"
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
  EXPECT_TRUE(small_row_replaced_midway_is_whole());
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

// Rows of a group go up together, one by one: what a bag of all of them comes to lies between the
// sums of before and after, is the same in all columns, and never falls, whether it was read as a
// sum or as rows. Meanwhile groups are made, left and made again.
TEST(EmbeddingConcurrency, SumsOfGroupsAreNeverOld) {
  constexpr std::uint32_t kRows = 8;
  for (const EmbeddingType type : {EmbeddingType::fp32, EmbeddingType::fp16}) {
    EmbeddingStore store;
    const auto table = store.create({64, type});
    for (std::uint32_t row = 0; row < kRows; ++row) {
      ASSERT_TRUE(table->append(row_of(*table, 0)));
    }
    OwnGroups groups;
    groups.add({0, 1, 2, 3, 4});
    groups.add({5, 6});
    OwnGroups others;
    others.add({6, 0});
    others.add({3, 1, 4});
    std::atomic<std::uint32_t> stored{0};  // replacements that are over, all with whole numbers
    std::atomic<bool> over{false};
    std::jthread writer([&] {
      // Each type has all whole numbers up to 2048.
      for (std::uint32_t i = 0; i < std::min<std::uint32_t>(kReplacements, kRows * 2048); ++i) {
        const auto value = static_cast<float>(i / kRows + 1);
        EXPECT_TRUE(table->replace(i % kRows, row_of(*table, value)));
        stored = i + 1;
      }
      over = true;
    });
    std::jthread grouper([&] {
      for (int i = 0; !over; ++i) {
        EXPECT_TRUE(
            group_rows(*table, i % 3 == 2 ? RowGroups{} : (i % 3 == 0 ? groups : others).get()));
      }
    });
    OwnWork work{{0, 1, 2, 3, 4, 5, 6, 7}, {0}, {}, {}, Reduction::sum};
    std::vector<float> results(64);
    float before = 0;
    bool good = true;
    bool last = false;
    do {
      last = over;
      const auto least = static_cast<float>(stored);  // each replacement adds 1
      ASSERT_TRUE(reduce(*table, work.get(), results));
      good &= results[0] >= least && results[0] >= before;
      for (const float value : results) good &= value == results[0];
      before = results[0];
    } while (!last);
    EXPECT_TRUE(good);
    EXPECT_EQ(before, static_cast<float>(stored));
    grouper.join();
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace espalier::embedding
