// SPDX-License-Identifier: Apache-2.0
// Embedding tables: appends and replacements, the page list and what is refused; reductions of each
// type of rows by each set of instructions against the plain reference.
#include "kinds/embedding/embedding_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "catalog/object_redo.hpp"
#include "catalog/samples.hpp"
#include "kinds/embedding/gather_kits.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

namespace espalier::embedding {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> row_in(const EmbeddingTable& table, std::uint32_t id) {
  OwnWork work;
  work.ids = {id};
  work.offsets = {0};
  return reduced(table, work, scalar_gather()).value();
}

std::vector<std::byte> stored(const EmbeddingTable& table, std::span<const float> values) {
  std::vector<std::byte> bytes(values.size() / table.options().dimension * table.row_bytes());
  EXPECT_TRUE(store_rows(table.options().type, table.options().dimension, values, bytes));
  return bytes;
}

TEST(EmbeddingTable, AppendsReplacesAndGivesItsMemoryBack) {
  EmbeddingStore store;
  const std::uint64_t before = store.region.taken_bytes();
  for (const EmbeddingType type : kAllTypes) {
    const auto table = store.create({8, type});
    EXPECT_EQ(table->rows(), 0u);
    EXPECT_EQ(table->append(row_of(*table, 1)), 0u);
    EXPECT_EQ(table->append(row_of(*table, 2)), 1u);
    ASSERT_TRUE(table->replace(0, row_of(*table, 3)));
    EXPECT_EQ(row_in(*table, 0), std::vector<float>(8, 3));
    EXPECT_EQ(row_in(*table, 1), std::vector<float>(8, 2));
    const EmbeddingNumbers now = table->all_numbers();
    EXPECT_EQ(now.rows, 2u);
    EXPECT_EQ(now.pages, 1u);
    EXPECT_EQ(now.rows_replaced, 1u);
    EXPECT_EQ(now.memory_bytes, kHeaderBytes + kPageBytes);
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
    ASSERT_TRUE(store.catalog.drop("t"));
    EXPECT_EQ(table->append(row_of(*table, 1)).error(), (Error{Code::not_found, 0, table->id()}));
    EXPECT_EQ(table->replace(0, row_of(*table, 1)).error().code, Code::not_found);
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
  }
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), before);
}

TEST(EmbeddingTable, RefusesWhatCannotBe) {
  EmbeddingStore store;
  const auto made = [&](EmbeddingShape shape) {
    return create_embedding_table(store.catalog, store.pool, "x", shape).error().code;
  };
  for (const std::uint32_t dimension : {0u, 4u, 12u, 1032u, ~0u}) {
    EXPECT_EQ(made({dimension, 1, {}}), Code::invalid_argument) << dimension;
  }
  EXPECT_EQ(made({8, 0, {}}), Code::invalid_argument);
  EXPECT_EQ(made({8, 5, {}}), Code::invalid_argument);
  EXPECT_EQ(made({8, 1, {0, 0, 1}}), Code::invalid_argument);
  const auto table = store.create({8});
  EXPECT_EQ(table->append({}).error().code, Code::invalid_argument);
  EXPECT_EQ(table->append(std::vector<std::byte>(33)).error().code, Code::invalid_argument);
  EXPECT_EQ(table->replace(0, row_of(*table, 1)).error(), (Error{Code::invalid_argument, 0, 0}));
  ASSERT_TRUE(table->append(row_of(*table, 1)));
  EXPECT_EQ(table->replace(1, row_of(*table, 1)).error(), (Error{Code::invalid_argument, 0, 1}));
  EXPECT_EQ(table->replace(0, std::vector<std::byte>(31)).error().code, Code::invalid_argument);
}

TEST(EmbeddingTable, AnAppendThatFindsNoMemoryLeavesNothing) {
  EmbeddingStore store(std::uint64_t{16} << 20);
  const auto table = store.create({1024});
  const std::vector<std::byte> page(std::size_t{511} * 4096);
  ASSERT_EQ(table->append(page), 0u);
  const std::vector<std::byte> many(std::size_t{511} * 4096 * 20);
  EXPECT_EQ(table->append(many).error().code, Code::out_of_memory);
  EXPECT_EQ(table->rows(), 511u);
  EXPECT_EQ(audit(*table), std::vector<std::string>{});
  EXPECT_EQ(table->append(page), 511u) << "what it took is free again";
}

// Rows of many pages, some of them begun, each filled with its number.
TEST(EmbeddingTable, FindsEachRowOnItsPage) {
  EmbeddingStore store;
  for (const EmbeddingType type : kAllTypes) {
    const auto table = store.create({1024, type});
    std::uint64_t row = 0;
    while (table->pages() < 4) {
      std::vector<std::byte> some;
      for (int i = 0; i < 300; ++i) {
        const auto bytes = row_of(*table, static_cast<float>((row + i) % 256));
        some.insert(some.end(), bytes.begin(), bytes.end());
      }
      ASSERT_EQ(table->append(some), row);
      row += 300;
    }
    for (std::uint32_t id = 0; id < row; ++id) {
      ASSERT_EQ(row_in(*table, id)[1023], static_cast<float>(id % 256)) << id;
    }
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
    ASSERT_TRUE(store.catalog.drop("t"));
  }
}

// A page list that is full moves: pages stay, and sequences go on where they were.
TEST(EmbeddingTable, MovesItsPageListOnce) {
  EmbeddingStore store;
  const std::uint64_t taken = store.region.taken_bytes();
  {
    const auto table =
        EmbeddingTable::create(store.pool, 7, "t", {1024}, /*first_list_entries=*/2).value();
    const std::vector<std::byte> zeros(std::size_t{511} * 4096 * 2);
    ASSERT_TRUE(table->append(zeros));
    ASSERT_TRUE(table->replace(5, row_of(*table, 1)));
    const PageList before = table->page_list();
    EXPECT_EQ(before.sequence_of(0), 2u);
    ASSERT_EQ(table->append(row_of(*table, 7)), 511u * 2);
    EXPECT_FALSE(table->is_newest(before));
    EXPECT_EQ(table->page_list().sequence_of(0), 2u);
    EXPECT_EQ(table->page_list().rows_of(0), before.rows_of(0));
    EXPECT_EQ(row_in(*table, 5)[0], 1);
    EXPECT_EQ(row_in(*table, 511 * 2)[0], 7);
    EXPECT_EQ(table->all_numbers().memory_bytes, kHeaderBytes + 4 * kPageBytes);
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
    const PageList after = table->page_list();
    ASSERT_TRUE(table->append(zeros));
    EXPECT_TRUE(table->is_newest(after));
    EXPECT_EQ(audit(*table), std::vector<std::string>{});
  }
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), taken);
}

TEST(EmbeddingTable, GivesItsMemoryBackInSteps) {
  EmbeddingStore store;
  const std::uint64_t taken = store.region.taken_bytes();
  auto table = EmbeddingTable::create(store.pool, 7, "t", {1024}, /*first_list_entries=*/2).value();
  ASSERT_TRUE(table->append(std::vector<std::byte>(std::size_t{511} * 4096 * 5)));
  EXPECT_EQ(table->memory_bytes(), kHeaderBytes + 6 * kPageBytes);
  table->set_dropped();
  EXPECT_FALSE(table->free_some(2));
  EXPECT_EQ(table->freed_bytes(), 2 * kPageBytes);
  EXPECT_FALSE(table->free_some(2));
  EXPECT_EQ(table->freed_bytes(), 4 * kPageBytes);
  EXPECT_TRUE(table->free_some(2));
  EXPECT_EQ(table->freed_bytes(), 6 * kPageBytes) << "the page list, too";
  EXPECT_TRUE(table->free_some(2));
  table.reset();
  store.pool.trim();
  EXPECT_EQ(store.region.taken_bytes(), taken);
}

TEST(EmbeddingTable, TellsItsSamples) {
  EmbeddingStore store;
  const auto table = store.create({8});
  ASSERT_TRUE(table->append(row_of(*table, 1)));
  const OwnWork work{{0, 0, 0}, {0, 2}, {}, {}, Reduction::sum};
  std::vector<float> results(16);
  ASSERT_TRUE(reduce(*table, work.get(), results));
  EXPECT_EQ(results[0], 2);
  catalog::SampleList list;
  table->add_samples(list);
  std::map<std::string, std::uint64_t> values;
  for (const wire::Sample& sample : list.take()) values[std::string(sample.name)] = sample.value;
  EXPECT_EQ(values["rows"], 1u);
  EXPECT_EQ(values["reductions"], 2u);
  EXPECT_EQ(values["gathered_rows"], 3u);
}

TEST(EmbeddingTable, IsMadeAgainOfItsForm) {
  EmbeddingStore store;
  const EmbeddingShape shape{16, 4, {}};
  const auto again = restore_embedding_table(
      store.catalog, store.pool, {ObjectKind::embedding, 7, "t", base::bytes_of(shape)});
  ASSERT_TRUE(again && *again != nullptr);
  EXPECT_EQ((*again)->id(), 7u);
  EXPECT_EQ((*again)->options(), (EmbeddingOptions{16, EmbeddingType::int8}));
  EXPECT_EQ((*again)->description(), base::bytes_of(shape));
  const auto refused = [&](std::string_view form) {
    return restore_embedding_table(store.catalog, store.pool, {ObjectKind::embedding, 8, "u", form})
        .error()
        .code;
  };
  EXPECT_EQ(refused("short"), Code::corrupt);
  EXPECT_EQ(refused(base::bytes_of(EmbeddingShape{15, 4, {}})), Code::corrupt);
}

// --- reductions ----------------------------------------------------------------------------------

/// The kernels that this machine has.
std::vector<const GatherKit*> all_kits() {
  return {&scalar_gather(), &gather_kit(base::best_isa(base::cpu_features(), base::Isa::avx2)),
          &gather_kit(base::best_isa(base::cpu_features(), base::Isa::avx512))};
}

TEST(EmbeddingReduction, AgreesWithThePlainReference) {
  base::Random random(7);
  EmbeddingStore store;
  for (const EmbeddingType type : kAllTypes) {
    for (const std::uint32_t dimension : {8u, 16u, 24u, 64u, 72u, 120u, 128u, 1024u}) {
      const auto table = store.create({dimension, type});
      const auto rows = random_rows(*table, 700, random);
      ASSERT_TRUE(table->append(rows));
      for (const Reduction reduction : kAllReductions) {
        for (const bool weighted : {false, true}) {
          const bool product = reduction == Reduction::inner_product;
          if (weighted && reduction != Reduction::sum && !product) continue;
          const OwnWork work = random_work(reduction, weighted, dimension, 700, 12, 150, random);
          const std::vector<float> wanted = reference(type, dimension, rows, work);
          for (const GatherKit* kit : all_kits()) {
            const auto found = reduced(*table, work, *kit);
            ASSERT_TRUE(found) << describe(found.error());
            EXPECT_TRUE(agree(*found, wanted, product))
                << kit->name << " type " << static_cast<int>(type) << " dimension " << dimension
                << " reduction " << static_cast<int>(reduction) << " weighted " << weighted;
          }
        }
      }
      ASSERT_TRUE(store.catalog.drop("t"));
    }
  }
}

TEST(GatherDistances, GrowWithTheLatencyOfMemoryWithinBounds) {
  GatherDistances before{};
  for (const std::uint64_t ns : {0, 60, 100, 125, 150, 1000}) {
    const GatherDistances distances = GatherDistances::of_latency(ns);
    EXPECT_GE(distances.soon, 1u);
    EXPECT_LT(distances.soon, distances.later);
    EXPECT_LE(distances.later, GatherDistances::kLaterRowsMax);
    if (ns != 0) {
      EXPECT_GE(distances.later, before.later);
    }
    before = distances;
  }
  EXPECT_GT(GatherDistances::of_latency(125).later, GatherDistances::of_latency(60).later);
  EXPECT_EQ(&GatherDistances::of_machine(), &GatherDistances::of_machine());
}

// Bags of one row, none, and more than a step has; more empty ones than a step ends.
TEST(EmbeddingReduction, StepsEndWhereverBagsDo) {
  base::Random random(8);
  EmbeddingStore store;
  const auto table = store.create({8});
  const auto rows = random_rows(*table, 100, random);
  ASSERT_TRUE(table->append(rows));
  const std::vector<std::vector<std::uint32_t>> lengths = {
      {},      {0},         {1},      {64},           {64, 64},      {63, 1, 64},
      {65, 0}, {0, 0, 128}, {200, 0}, {1, 63, 1, 63}, {32, 32, 0, 1}};
  std::vector<std::vector<std::uint32_t>> all = lengths;
  all.emplace_back(1000, 0);
  all.emplace_back(1000, 1);
  std::vector<std::uint32_t> mixed(600, 0);
  mixed[255] = 3;
  mixed[256] = 70;
  mixed[599] = 1;
  all.push_back(mixed);
  for (const auto& of_bags : all) {
    OwnWork work;
    for (const std::uint32_t length : of_bags) {
      work.offsets.push_back(static_cast<std::uint32_t>(work.ids.size()));
      for (std::uint32_t i = 0; i < length; ++i) {
        work.ids.push_back(static_cast<std::uint32_t>(random.below(100)));
      }
    }
    const std::vector<float> wanted = reference(EmbeddingType::fp32, 8, rows, work);
    for (const GatherKit* kit : all_kits()) {
      const auto found = reduced(*table, work, *kit);
      ASSERT_TRUE(found);
      EXPECT_TRUE(agree(*found, wanted, false)) << of_bags.size() << ' ' << kit->name;
    }
  }
}

TEST(EmbeddingReduction, NamesAnIdThatIsOutOfRange) {
  base::Random random(9);
  EmbeddingStore store;
  const auto table = store.create({8});
  OwnWork work{{0}, {0}, {}, {}, Reduction::sum};
  EXPECT_EQ(describe(reduced(*table, work, scalar_gather()).error()),
            "id 0 at place 0 is not below the table's 0 rows");
  ASSERT_TRUE(table->append(random_rows(*table, 10, random)));
  for (const std::uint32_t place : {0u, 5u, 127u, 128u, 200u, 999u}) {
    work.ids.assign(1000, 3);
    work.ids[place] = place % 2 == 0 ? 10 : ~std::uint32_t{0};
    const auto found = reduced(*table, work, scalar_gather());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().id, work.ids[place]);
    EXPECT_EQ(found.error().place, place);
    EXPECT_EQ(found.error().rows, 10u);
  }
}

TEST(EmbeddingReduction, SaysWhatIsWrongWithWork) {
  const auto fault = [](OwnWork work) { return fault_of_work(work.get(), 8).value_or("none"); };
  OwnWork good{{1, 2, 3}, {0, 2}, {}, {}, Reduction::sum};
  EXPECT_EQ(fault(good), "none");
  EXPECT_EQ(fault({{}, {}, {}, {}, Reduction::max}), "none");
  OwnWork bad = good;
  bad.reduction = static_cast<Reduction>(6);
  EXPECT_EQ(fault(bad), "there is no such reduction");
  bad.reduction = static_cast<Reduction>(0);
  EXPECT_EQ(fault(bad), "there is no such reduction");
  EXPECT_EQ(fault({{1}, {}, {}, {}, Reduction::sum}), "there are ids, and no bag");
  EXPECT_EQ(fault({{1}, {1}, {}, {}, Reduction::sum}), "the first offset is not 0");
  EXPECT_EQ(fault({{1, 2}, {0, 2, 1}, {}, {}, Reduction::sum}), "offset 2 is below the one before");
  EXPECT_EQ(fault({{1, 2}, {0, 3}, {}, {}, Reduction::sum}), "offset 1 is above the number of ids");
  for (const Reduction reduction : {Reduction::mean, Reduction::max, Reduction::min}) {
    EXPECT_EQ(fault({{1}, {0}, {1}, {}, reduction}), "only sum and inner product take weights");
  }
  EXPECT_EQ(fault({{1}, {0}, {1, 2}, {}, Reduction::sum}), "there are not as many weights as ids");
  EXPECT_EQ(fault({{1}, {0}, {}, {1}, Reduction::sum}), "only the inner product takes a vector");
  EXPECT_EQ(fault({{1}, {0}, {}, {1}, Reduction::inner_product}),
            "the vector has not as many values as a row");
}

// IEEE's rules: a NaN stays, infinities add up or cancel, and max and min keep NaN.
TEST(EmbeddingReduction, KeepsNaNAndInfinity) {
  EmbeddingStore store;
  for (const EmbeddingType type : {EmbeddingType::fp32, EmbeddingType::fp16, EmbeddingType::bf16}) {
    const auto table = store.create({24, type});
    std::vector<float> values(3 * 24, 1);
    values[0] = kNaN;  // row 0
    values[1] = kInfinity;
    values[24 + 1] = -kInfinity;  // row 1
    values[24 + 17] = kNaN;       // in the half register
    values[48 + 2] = kInfinity;   // row 2
    const auto rows = stored(*table, values);
    ASSERT_TRUE(table->append(rows));
    for (const Reduction reduction : kAllReductions) {
      OwnWork work{{0, 1, 2, 2, 1, 0, 2}, {0, 3, 6}, {}, {}, reduction};
      if (reduction == Reduction::inner_product) work.vector.assign(24, 1);
      const auto wanted = reference(type, 24, rows, work);
      for (const GatherKit* kit : all_kits()) {
        EXPECT_TRUE(agree(*reduced(*table, work, *kit), wanted, false)) << kit->name;
      }
      if (reduction == Reduction::max) {
        const auto found = reduced(*table, work, *all_kits().back());
        EXPECT_TRUE(std::isnan((*found)[0]));
        EXPECT_EQ((*found)[1], kInfinity);
        EXPECT_TRUE(std::isnan((*found)[24 + 17])) << "whichever comes first";
      }
    }
    ASSERT_TRUE(store.catalog.drop("t"));
  }
}

TEST(EmbeddingReduction, RepeatedIdsCountEachTime) {
  EmbeddingStore store;
  const auto table = store.create({8});
  ASSERT_TRUE(table->append(row_of(*table, 3)));
  for (const GatherKit* kit : all_kits()) {
    const auto sum = reduced(*table, {{0, 0, 0}, {0}, {}, {}, Reduction::sum}, *kit);
    EXPECT_EQ(*sum, std::vector<float>(8, 9));
    const auto mean = reduced(*table, {{0, 0, 0}, {0}, {}, {}, Reduction::mean}, *kit);
    EXPECT_EQ(*mean, std::vector<float>(8, 3));
  }
}

}  // namespace
}  // namespace espalier::embedding
