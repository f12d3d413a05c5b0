// SPDX-License-Identifier: Apache-2.0
// Heap exhaustion at every allocation of an append to an embedding table, or of a grouping of its
// rows: it is done or not, and nothing leaks. The same for requests to models that join a batch,
// and for its steps.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "kinds/embedding/grouping.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/offload/dense_batches.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
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
        done = group_rows(*table, {sizes, grouped}).has_value();
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
      EXPECT_TRUE(group_rows(*table, {sizes, grouped}));
    }
    EXPECT_GT(failures, 0u);
  }
}

/// A model with its tables, and requests to it whose rows are reduced.
struct RankedStore {
  RankedStore() {
    base::Random random(11);
    parts.draw(random);
    for (const std::string& name : parts.tables) {
      const auto table = store.create({parts.dimension}, name);
      EXPECT_TRUE(table->append(random_rows(*table, 9, random)));
    }
    model = create_ranking_model(store.catalog, store.pool, "model", parts.file()).value();
  }
  [[nodiscard]] std::shared_ptr<Inference> reduced(std::string_view text) const {
    auto made = std::make_shared<Inference>(model);
    EXPECT_TRUE(made->read({0, 1}, text));
    EXPECT_TRUE(made->open(store.catalog));
    while (made->step().value()) {
    }
    return made;
  }
  [[nodiscard]] std::vector<float> ranks_of(std::string_view text) const {
    return infer(model, store.catalog, {0, 1}, text).value();
  }

  EmbeddingStore store;
  RankingParts parts;
  std::shared_ptr<RankingObject> model;
};

/// A batch of other queries may come to other last bits.
void expect_near(const std::vector<float>& found, const std::vector<float>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-5) << i;
}

/// Does it again, until a heap that failed lets it: whether it failed.
bool failed_before_done(std::int64_t allocations, Failure failure, const auto& act) {
  test::FailingHeap heap(allocations, failure);
  try {
    act();
  } catch (const std::bad_alloc&) {
    heap.stop();
    act();
  }
  heap.stop();
  return heap.failed();
}

// A request that found no heap is in no batch, and one whose steps found none is ranked whole.
TEST(HeapEmbedding, BatchesWithoutAHeapHaveEachRequestOnce) {
  const RankedStore world;
  const std::string_view texts[] = {"1 2 3 4 5 | 1 | 2 3\n-1 0 1 0 1 | | 8", "0 1 0 1 0 | 4 4 |"};
  std::string many;
  for (int i = 0; i < 40; ++i) many += "1 0 " + std::to_string(i % 9) + " 0 1 | 2 | 3\n";
  for (const Failure failure : {Failure::once, Failure::for_good}) {
    std::uint64_t failures = 0;
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      offload::DenseBatches batches;
      std::vector<std::shared_ptr<Inference>> requests;
      std::shared_ptr<offload::DenseBatch> batch;
      failed = false;
      for (const std::string_view text : {texts[0], texts[1], std::string_view(many)}) {
        requests.push_back(world.reduced(text));
        failed |= failed_before_done(n, failure, [&] { batch = batches.join(requests.back(), 0); });
        EXPECT_EQ(requests.back().use_count(), 2);
      }
      batches.close(batch);
      std::uint32_t steps = 0;
      failed |= failed_before_done(n, failure, [&] {
        while (batch->step()) ++steps;
      });
      failures += failed ? 1 : 0;
      EXPECT_EQ(batch->state(), offload::DenseBatch::State::ranked);
      EXPECT_EQ(steps, 2u);  // of 43 queries, once each
      for (std::size_t i = 0; i < requests.size(); ++i) {
        expect_near(requests[i]->ranks(), world.ranks_of(i < 2 ? texts[i] : many));
      }
    }
    EXPECT_GT(failures, 2u);
  }
}

}  // namespace
}  // namespace espalier::embedding
