// SPDX-License-Identifier: Apache-2.0
// Threads that replace the same rows and append others: the sink has their records in the order of
// what they did, so that they make the same table again.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "catalog/catalog.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/grouped_rows.hpp"
#include "kinds/embedding/testing/whole_rows.hpp"

namespace espalier::embedding {
namespace {

constexpr int kWritesOfAThread = base::kThreadSanitizer ? 300 : 3000;

TEST(EmbeddingRedoConcurrency, RecordsComeInTheOrderOfTheirEffects) {
  EmbeddingStore store;
  EmbeddingStore other;
  catalog::RecordingSink sink;
  const auto table = store.create({8});
  const auto again = other.create({8});
  table->record_to(&sink);
  ASSERT_TRUE(table->append(row_of(*table, 0)));
  std::vector<std::thread> writers;
  for (int thread = 0; thread < 3; ++thread) {
    writers.emplace_back([&, thread] {
      for (int i = 0; i < kWritesOfAThread; ++i) {
        const auto row = row_of(*table, static_cast<float>(i * 3 + thread));
        if (i % 10 == 0) {
          ASSERT_TRUE(table->append(row));
        } else {
          ASSERT_TRUE(table->replace(static_cast<std::uint64_t>(i) % 2 % table->rows(), row));
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const std::string_view record : sink.records()) ASSERT_TRUE(apply_redo(*again, record));
  ASSERT_EQ(again->rows(), table->rows());
  OwnWork all;
  for (std::uint32_t row = 0; row < table->rows(); ++row) {
    all.ids.push_back(row);
    all.offsets.push_back(row);
  }
  const GatherKit& kit = gather_kit(base::Isa::scalar);
  EXPECT_TRUE(agree(*reduced(*again, all, kit), *reduced(*table, all, kit), false));
  EXPECT_EQ(audit(*again), std::vector<std::string>{});
}

TEST(EmbeddingRedoConcurrency, ChangesAreSeenInTheOrderOfTheirRecords) {
  EXPECT_TRUE(changes_are_seen_in_order(base::kThreadSanitizer ? 10 : 50));
}

// Rows of groups that one thread replaces and another one stores when they are durable, beside
// readers that compute sums for both: each sum is of rows that were there together.
TEST(EmbeddingRedoConcurrency, SumsAreOfRowsThatWereThereTogether) {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  NumberedRows of(8);
  EmbeddingTable& table = *of.table;
  for (std::uint32_t row = 0; row < 8; ++row) {
    ASSERT_TRUE(table.replace(row, row_of(table, 0)));
  }
  OwnGroups groups;
  groups.add({0, 1});
  groups.add({2, 3, 4});
  ASSERT_TRUE(group_rows(table, groups.get()));
  table.record_to(&sink);
  std::atomic<bool> over{false};
  std::thread marks([&] {
    while (!over) sink.make_durable();
  });
  std::thread writer([&] {
    for (int i = 1; i <= kWritesOfAThread; ++i) {
      const auto row = static_cast<std::uint64_t>(i) % 8;
      EXPECT_TRUE(table.replace(row, row_of(table, static_cast<float>(i / 8))));
      if (i % 512 == 0) {
        EXPECT_TRUE(group_rows(table, groups.get()));
      }
    }
    over = true;
  });
  // Values of a row rise, so sums do; of one row all columns are the same.
  float last = 0;
  bool good = true;
  do {
    const auto found = reduced(table, {{0, 1, 2, 3, 4}, {0}, {}, {}, Reduction::sum},
                               gather_kit(base::Isa::scalar))
                           .value();
    for (const float value : found) good &= value == found.front();
    good &= found.front() >= last;
    last = found.front();
  } while (!over);
  writer.join();
  marks.join();
  sink.make_durable();
  EXPECT_TRUE(good);
  const auto value_of = [&](std::uint32_t row) { return of.sum({row}); };
  EXPECT_EQ(of.sum({0, 1}), value_of(0) + value_of(1));
  EXPECT_EQ(audit(table), std::vector<std::string>{});
  table.record_to(nullptr);
}

}  // namespace
}  // namespace espalier::embedding
