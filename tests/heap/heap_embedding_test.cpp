// SPDX-License-Identifier: Apache-2.0
// A heap that has nothing at every single allocation of an append to an embedding table, or of a
// grouping of its rows: it is done or not, and no memory is lost.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "kinds/embedding/testing/embedding_store.hpp"
#include "tests/heap/failing_heap.hpp"

namespace espalier::embedding {
namespace {

using Failure = test::FailingHeap::Failure;

/// Whether it has taken effect.
bool appended_rows(EmbeddingTable& table, std::span<const std::byte> rows) {
  try {
    return table.append(rows).has_value();
  } catch (const std::bad_alloc&) {
    return false;
  }
}

TEST(HeapEmbedding, RowsWithoutAHeapAreThereOrNotAndNoPageIsLost) {
  // Two pages, of which the first page list has room for one.
  const std::vector<std::byte> rows(std::size_t{511} * 4096 * 2);
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    std::uint64_t failures = 0;
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      EmbeddingStore store;
      const auto table =
          EmbeddingTable::create(store.pool, 7, "t", {1024}, /*first_list_entries=*/1).value();
      const std::uint64_t before = store.region.taken_bytes();
      test::FailingHeap heap(n, failure);
      const bool done = appended_rows(*table, rows);
      heap.stop();
      failed = heap.failed();
      failures += failed ? 1 : 0;
      EXPECT_EQ(table->rows(), done ? 1022u : 0u);
      EXPECT_EQ(audit(*table), std::vector<std::string>{});
      if (done) continue;
      EXPECT_TRUE(failed);
      store.pool.trim();
      EXPECT_EQ(store.region.taken_bytes(), before);
      EXPECT_TRUE(table->append(rows));
    }
    EXPECT_GT(failures, 0u);
  }
}

TEST(HeapEmbedding, GroupsWithoutAHeapAreThereOrNotAndNoPageIsLost) {
  const std::uint8_t sizes[] = {2, 3};
  const std::uint32_t grouped[] = {0, 1, 2, 3, 4};
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    std::uint64_t failures = 0;
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      EmbeddingStore store;
      const auto table = EmbeddingTable::create(store.pool, 7, "t", {8}).value();
      ASSERT_TRUE(table->append(std::vector<std::byte>(std::size_t{5} * 32)));
      const std::uint64_t before = store.region.taken_bytes();
      test::FailingHeap heap(n, failure);
      bool done = false;
      try {
        done = table->group({sizes, grouped}).has_value();
      } catch (const std::bad_alloc&) {
        done = false;
      }
      heap.stop();
      failed = heap.failed();
      failures += failed ? 1 : 0;
      EXPECT_EQ(table->memo() != nullptr, done);
      EXPECT_EQ(audit(*table), std::vector<std::string>{});
      if (done) continue;
      EXPECT_TRUE(failed);
      store.pool.trim();
      EXPECT_EQ(store.region.taken_bytes(), before);
      EXPECT_TRUE(table->group({sizes, grouped}));
    }
    EXPECT_GT(failures, 0u);
  }
}

}  // namespace
}  // namespace espalier::embedding
