// SPDX-License-Identifier: Apache-2.0
// Embedding tables of a node whose rows a client reads by READs: the node does nothing, how often
// the client waits, what goes through the rings instead, and reads during writes.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "client/store_impl.hpp"
#include "espalier/embedding_table.hpp"
#include "kinds/embedding/calls.hpp"
#include "node/metrics.hpp"
#include "tests/support/node_fixture.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

class EmbeddingReads : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    reach_by(GetParam());
    start();
    store_.emplace(connect());
  }
  /// Rows of whole numbers, so that sums are exact in any order: row r has r % 50 in each column.
  [[nodiscard]] EmbeddingTable make_rows(const std::string& name, std::uint32_t rows,
                                         const EmbeddingOptions& options = {64}) {
    auto made = store_->create_embedding_table(name, options);
    EXPECT_TRUE(made) << message(made.error());
    for (std::uint32_t first = 0; first < rows; first += 500) {
      std::vector<float> values;
      for (std::uint32_t row = first; row < std::min(first + 500, rows); ++row) {
        values.insert(values.end(), options.dimension, static_cast<float>(row % 50));
      }
      EXPECT_TRUE(made->append(values));
    }
    return *made;
  }
  [[nodiscard]] tree::WalkTraffic traffic() const {
    return client::StoreImpl::of(*store_).read_traffic();
  }
  /// How many such calls the node has had.
  [[nodiscard]] std::uint64_t asked_for(wire::OffloadId call) const {
    for (const node::OffloadNumbers& offload : node::numbers_of(*node_).offloads) {
      if (offload.id == call) return offload.requests;
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t reductions_of_node() const {
    return asked_for(wire::OffloadId::embedding_reduce) +
           asked_for(wire::OffloadId::embedding_reduce_tables);
  }
  std::optional<Store> store_;
};

TEST_P(EmbeddingReads, BagsAreReducedWithoutTheNode) {
  EmbeddingTable table = make_rows("t", 20'000);  // some pages
  const std::uint64_t seed = seed_from_environment(4713);
  SCOPED_TRACE(seed_text(seed));
  base::Random random(seed);
  constexpr std::uint32_t kRequests = 100;
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    std::vector<std::uint32_t> ids;
    const std::uint32_t offsets[] = {0, 10, 10};
    float sums[3] = {};
    for (std::uint32_t j = 0; j < 50; ++j) {
      ids.push_back(static_cast<std::uint32_t>(random.below(20'000)));
      sums[j < 10 ? 0 : 2] += static_cast<float>(ids.back() % 50);
    }
    const auto found = table.reduce(Reduction::sum, {ids, offsets});
    ASSERT_TRUE(found) << message(found.error());
    for (std::size_t c = 0; c < found->size(); ++c) ASSERT_EQ((*found)[c], sums[c / 64]);
  }
  EXPECT_EQ(traffic().by_rings, 0u);
  EXPECT_EQ(reductions_of_node(), 0u);
  EXPECT_EQ(asked_for(wire::OffloadId::one_sided_embedding), 1u);
  const bool in_order = std::string(GetParam()).starts_with("shm");
  EXPECT_LE(traffic().round_trips, (in_order ? 1 : 2) * kRequests + 2 + 4 * 3)
      << "the header, then entries of three pages, each perhaps for itself";
}

TEST_P(EmbeddingReads, WhatCannotBeReadGoesByTheRings) {
  EmbeddingTable table = make_rows("t", 100);
  const std::uint8_t sizes[] = {2};
  const std::uint32_t pair[] = {3, 4};
  ASSERT_TRUE(table.group({sizes, pair}));
  std::vector<std::uint32_t> ids = {3, 4, 5};
  const std::uint32_t first[] = {0};
  const std::vector<float> wanted(64, 12);
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, first}).value(), wanted);
  EXPECT_EQ(traffic().by_rings, 0u);
  EXPECT_EQ(reductions_of_node(), 0u);
  const auto grouping = table.renumber(ids);
  ASSERT_TRUE(grouping);
  EXPECT_EQ(table.reduce(Reduction::sum, {ids, first, {}, *grouping}).value(), wanted);
  EXPECT_EQ(traffic().by_rings, 1u);
  EXPECT_EQ(reductions_of_node(), 1u);
}

// Every type and reduction, with weights and without: the bits are those that the node comes to.
TEST_P(EmbeddingReads, EachReductionIsAsTheNodeHasIt) {
  const std::uint64_t seed = seed_from_environment(4715);
  SCOPED_TRACE(seed_text(seed));
  base::Random random(seed);
  constexpr std::uint32_t kColumns = 24;
  const auto values = [&random](std::size_t count) {
    std::vector<float> all(count);
    for (float& value : all) value = static_cast<float>(random.below(1 << 16)) / 4096 - 8;
    return all;
  };
  const std::vector<float> vector = values(kColumns);
  const Store other = *Store::connect("unix:" + socket());
  for (const EmbeddingType type :
       {EmbeddingType::fp32, EmbeddingType::fp16, EmbeddingType::bf16, EmbeddingType::int8}) {
    const std::string name = "t" + std::to_string(static_cast<int>(type));
    EmbeddingTable table = *store_->create_embedding_table(name, {kColumns, type});
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(table.append(values(std::size_t{500} * kColumns)));
    const EmbeddingTable by_node = *other.open_embedding_table(name);
    std::vector<std::uint32_t> ids;
    for (int i = 0; i < 700; ++i) ids.push_back(static_cast<std::uint32_t>(random.below(2000)));
    const std::vector<std::uint32_t> offsets = {0, 1, 1, 20, 650};
    const std::vector<float> weights = values(ids.size());
    for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max,
                                      Reduction::min, Reduction::inner_product}) {
      const bool product = reduction == Reduction::inner_product;
      const std::span<const float> with = product ? vector : std::span<const float>{};
      for (const bool weighted : {false, true}) {
        if (weighted && reduction != Reduction::sum && !product) continue;
        const EmbeddingBags bags{ids, offsets, weighted ? weights : std::span<const float>{}};
        const auto read = table.reduce(reduction, bags, with);
        ASSERT_TRUE(read) << message(read.error());
        EXPECT_EQ(*read, by_node.reduce(reduction, bags, with).value())
            << name << " reduction " << static_cast<int>(reduction) << " weighted " << weighted;
      }
    }
  }
  EXPECT_EQ(traffic().by_rings, 0u);
  EXPECT_EQ(reductions_of_node(), 4u * 7) << "those that it was asked for";
}

TEST_P(EmbeddingReads, SeveralTablesAreReadOneByOne) {
  const EmbeddingTable a = make_rows("a", 100);
  const EmbeddingTable b = make_rows("b", 60, {8, EmbeddingType::int8});
  const std::uint32_t ids[] = {3, 7};
  const std::uint32_t first[] = {0};
  const TableBags both[] = {{a, {ids, first}}, {b, {ids, first}}};
  const auto found = EmbeddingTable::reduce_tables(Reduction::sum, both);
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_EQ(*found, std::vector<float>(72, 10));
  EXPECT_EQ(reductions_of_node(), 0u);
}

TEST_P(EmbeddingReads, ADroppedTableIsNotFoundAndAnotherOneIsRead) {
  const std::uint32_t ids[] = {3, 7};
  const std::uint32_t first[] = {0};
  // More tables than a session has leases.
  for (int i = 0; i < 80; ++i) {
    const EmbeddingTable table = make_rows("t", 10);
    EXPECT_EQ(table.reduce(Reduction::max, {ids, first}).value(), std::vector<float>(64, 7));
    ASSERT_TRUE(store_->drop_embedding_table("t"));
    EXPECT_EQ(table.reduce(Reduction::max, {ids, first}).error().error.code, Code::not_found);
  }
  EXPECT_EQ(asked_for(wire::OffloadId::one_sided_embedding), 80u);
  EXPECT_EQ(traffic().by_rings, 80u) << "each once it was dropped";
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingReads, ::testing::Values("shm_one_sided", "roce_one_sided"),
                         way_name);

class EmbeddingReadsConcurrency : public EmbeddingReads {};

// Rows are whole, and of a moment between the begin and the end of a reduction, while another
// client replaces and appends.
TEST_P(EmbeddingReadsConcurrency, RowsAreWholeWhileTheyAreReplaced) {
  EmbeddingTable table = make_rows("t", 0);
  constexpr std::uint32_t kRows = 4;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    ASSERT_TRUE(table.append(std::vector<float>(64, 0)));
  }
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  std::atomic<bool> over{false};
  std::jthread writer([&] {
    for (int i = 1; i <= 2'000; ++i) {
      begun = i;
      for (std::uint32_t row = 0; row < kRows; ++row) {
        EXPECT_TRUE(table.replace(row, std::vector<float>(64, static_cast<float>(i))));
      }
      done = i;
      if (i % 100 == 0) {
        EXPECT_TRUE(table.append(std::vector<float>(64, 0)));
      }
    }
    over = true;
  });
  const std::uint32_t ids[] = {0, 1, 2, 3, 3, 0};
  const std::uint32_t offsets[] = {0, 1, 2, 3, 4};
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      do {
        const int before = done;
        const auto found = table.reduce(Reduction::max, {ids, offsets});
        const int after = begun;
        ASSERT_TRUE(found) << message(found.error());
        for (std::size_t i = 0; i < found->size(); ++i) {
          ASSERT_EQ((*found)[i], (*found)[i / 64 * 64]) << "a torn row";
          ASSERT_GE((*found)[i], static_cast<float>(before));
          ASSERT_LE((*found)[i], static_cast<float>(after));
        }
      } while (!over);
    });
  }
  for (std::jthread& reader : readers) reader.join();
  writer.join();
  EXPECT_GT(traffic().round_trips, 0u);
}

INSTANTIATE_TEST_SUITE_P(Ways, EmbeddingReadsConcurrency, ::testing::Values("shm_one_sided"),
                         way_name);

}  // namespace
}  // namespace espalier::test
