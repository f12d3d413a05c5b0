// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/remote/bag_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing/seeds.hpp"
#include "kinds/embedding/remote/testing/embedding_world.hpp"

namespace espalier::place {
namespace {

using embedding::OwnWork;

fabric::sim::Faults calm(bool in_order) {
  fabric::sim::Faults faults;
  faults.reads_in_order = in_order;
  return faults;
}

void run_bag_seeds(const fabric::sim::Faults& faults, const EmbeddingWorldOptions& options,
                   std::uint64_t usually, EmbeddingWorldCounts& counts) {
  base::Seeds seeds(usually);
  for (std::uint64_t seed = 1; seed <= seeds.count(); ++seed) {
    ASSERT_EQ(wrong_with_bags_read(seed, faults, options, counts), "");
    seeds.done();
  }
  seeds.report("answers", counts.answers);
  seeds.report("rows read again", counts.rereads);
  seeds.report("contended", counts.contended);
  seeds.report("of a dropped table", counts.not_found);
  seeds.report("without an answer", counts.lost);
}

TEST(BagReader, ComesToWhatAPlainReferenceDoes) {
  for (const bool in_order : {true, false}) {
    for (const EmbeddingType type : embedding::kAllTypes) {
      constexpr std::uint32_t kRows = 300;
      EmbeddingWorld world(1, calm(in_order), {.dimension = 72, .type = type, .first_rows = 0});
      ASSERT_TRUE(world.connected());
      base::Random random(3);
      const auto rows = embedding::random_rows(world.table(), kRows, random);
      ASSERT_TRUE(world.table().append(rows));
      for (const Reduction reduction : embedding::kAllReductions) {
        const bool product = reduction == Reduction::inner_product;
        for (const bool weighted : {false, product || reduction == Reduction::sum}) {
          const OwnWork work =
              embedding::random_work(reduction, weighted, 72, kRows, 30, 40, random);
          const auto found = world.reduce(work.get());
          ASSERT_TRUE(found) << message(found.error().error);
          EXPECT_TRUE(embedding::agree(*found, embedding::reference(type, 72, rows, work), product))
              << static_cast<int>(reduction) << " of type " << static_cast<int>(type);
          if (product) continue;
          const auto own =
              embedding::reduced(world.table(), work, embedding::gather_kit(base::isa()));
          EXPECT_TRUE(embedding::agree(*found, own.value(), false)) << "not the same bits";
        }
      }
    }
  }
}

TEST(BagReader, ARequestTakesOneWaitWhereItsPagesAreKnownAndReadsKeepTheirOrder) {
  for (const bool in_order : {true, false}) {
    EmbeddingWorld world(1, calm(in_order), {.first_rows = 2'200, .step_rows = 64});
    ASSERT_TRUE(world.connected());
    OwnWork work;
    for (std::uint32_t i = 0; i < 60; ++i) work.ids.push_back(i * 37);
    work.offsets = {0, 20};
    const auto waits = [&] { return world.reader().traffic().round_trips; };
    ASSERT_TRUE(world.reduce(work.get()));
    const std::uint64_t rest = in_order ? 1 : 2;
    EXPECT_EQ(waits(), 2 + rest) << "the header, entries of both pages, then rows and their proof";
    std::uint64_t before = waits();
    ASSERT_TRUE(world.reduce(work.get()));
    EXPECT_EQ(waits() - before, rest);
    // A replacement costs one look more, and rows of its page alone.
    ASSERT_TRUE(world.table().replace(0, embedding::row_of(world.table(), 9)));
    before = waits();
    ASSERT_TRUE(world.reduce(work.get()));
    EXPECT_EQ(waits() - before, 2 * rest);
    EXPECT_GT(world.reader().counts().rereads, 0u);
    EXPECT_LT(world.reader().counts().rereads, 60u);
    // Appended rows are found.
    ASSERT_TRUE(world.table().append(embedding::row_of(world.table(), 5)));
    work.ids[0] = 2'200;
    ASSERT_TRUE(world.reduce(work.get()));
  }
}

TEST(BagReader, AnIdThatIsNoRowsIsNamed) {
  EmbeddingWorld world(1, calm(true), {.first_rows = 10});
  ASSERT_TRUE(world.connected());
  OwnWork work;
  work.ids = {3, 9, 10, 11};
  work.offsets = {0};
  for (int again = 0; again < 2; ++again) {
    const auto found = world.reduce(work.get());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().error, (Error{Code::invalid_argument, 0, 10}));
    EXPECT_EQ(found.error().words, "id 10 at place 2 is not below the table's 10 rows");
  }
  work.ids.clear();
  EXPECT_EQ(world.reduce(work.get()).value(), std::vector<float>(256));
  work.offsets.clear();
  EXPECT_EQ(world.reduce(work.get()).value(), std::vector<float>());
  world.table().set_dropped();
  EXPECT_EQ(world.reduce(work.get()).error().error.code, Code::not_found);
}

TEST(BagReader, RowsAreWholeWhileTheHostReplacesThem) {
  for (const bool in_order : {true, false}) {
    fabric::sim::Faults faults = calm(in_order);
    faults.tear = 1;
    EmbeddingWorldCounts counts;
    run_bag_seeds(faults, {}, 12, counts);
    if (::testing::Test::HasFatalFailure()) return;
    EXPECT_GT(counts.answers, 0u);
    EXPECT_GT(counts.rereads, 0u);
    EXPECT_GT(counts.torn, 0u);
    EXPECT_GT(counts.moved, 0u);
  }
}

TEST(BagReader, ADroppedTableIsNotFound) {
  for (const bool in_order : {true, false}) {
    fabric::sim::Faults faults = calm(in_order);
    faults.tear = 0.3;
    faults.hold_read = 0.1;
    EmbeddingWorldCounts counts;
    run_bag_seeds(faults, {.appended = 0, .drops = 1}, 16, counts);
    if (::testing::Test::HasFatalFailure()) return;
    EXPECT_GT(counts.answers, 0u);
    EXPECT_GT(counts.not_found, 0u);
  }
}

TEST(BagReader, InHarshWeather) {
  EmbeddingWorldCounts counts;
  run_bag_seeds(fabric::sim::Faults::harsh(), {.drops = 0.3}, 12, counts);
  if (::testing::Test::HasFatalFailure()) return;
  EXPECT_GT(counts.answers, 0u);
  EXPECT_GT(counts.reordered, 0u);
}

TEST(BagReader, RowsThatAreReplacedWithoutAPauseAreLeftToOthers) {
  EmbeddingWorldCounts counts;
  run_bag_seeds(calm(false), {.hot_rows = 1, .replaced_every_ns = 100}, 2, counts);
  if (::testing::Test::HasFatalFailure()) return;
  EXPECT_GT(counts.contended, 0u);
}

// Whatever the node's memory has: an error, or numbers.
TEST(BagReader, BytesThatAreNoTablesLeadNowhere) {
  base::Seeds seeds(60);
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= seeds.count(); ++seed) {
    EmbeddingWorld world(seed, calm(seed % 2 == 0), {.dimension = 64, .first_rows = 50});
    ASSERT_TRUE(world.connected());
    base::Random random(seed);
    OwnWork work;
    for (std::uint32_t i = 0; i < 40; ++i) {
      work.ids.push_back(static_cast<std::uint32_t>(random.below(seed % 3 == 0 ? 1 << 20 : 50)));
    }
    work.offsets = {0};
    for (std::uint64_t damage = 1 + random.below(4); damage != 0; --damage) {
      const std::uint64_t word = random.chance(0.5) ? random() : random.below(1 << 22);
      world.damage(random.below(20) * 8, word);
    }
    const auto found = world.reduce(work.get());
    refused += found ? 0 : 1;
    if (!found) {
      EXPECT_NE(found.error().error.code, Code::connection_lost);
    }
    seeds.done();
  }
  EXPECT_GT(refused, 0u);
}

TEST(EmbeddingTarget, APlaceThatNoTableHasIsRefused) {
  const auto detail = [](std::uint64_t offset, embedding::EmbeddingShape shape) {
    const auto target = EmbeddingTarget::read({offset, 3, 1, shape}, std::uint64_t{1} << 20);
    return target ? 0 : target.error().detail;
  };
  const embedding::EmbeddingShape good{64, 1, {}};
  EXPECT_EQ(detail(512, good), 0u);
  EXPECT_EQ(detail((1 << 20) - embedding::kHeaderBytes, good), 0u);
  EXPECT_EQ(detail((1 << 20) - embedding::kHeaderBytes + 512, good), 2u);
  EXPECT_EQ(detail(~std::uint64_t{0} - 511, good), 2u);
  EXPECT_EQ(detail(100, good), 2u);
  EXPECT_EQ(detail(512, {60, 1, {}}), 1u);
  EXPECT_EQ(detail(512, {64, 5, {}}), 1u);
}

}  // namespace
}  // namespace espalier::place
