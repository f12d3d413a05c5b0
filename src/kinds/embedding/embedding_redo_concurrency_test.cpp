// SPDX-License-Identifier: Apache-2.0
// Threads that replace the same rows and append others: the sink has their records in the order of
// what they did, so that they make the same table again.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/barrier.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "catalog/catalog.hpp"
#include "kinds/embedding/apply_redo.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

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

}  // namespace
}  // namespace espalier::embedding
