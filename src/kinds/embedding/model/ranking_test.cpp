// SPDX-License-Identifier: Apache-2.0
// Ranking models against the plain reference, in double precision, within the error that single
// precision has; files and queries that are none.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "catalog/apply_record.hpp"
#include "catalog/testing/recording_sink.hpp"
#include "kinds/embedding/model/inference.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/embedding/model/model_queries.hpp"
#include "kinds/embedding/model/model_redo.hpp"
#include "kinds/embedding/model/networks.hpp"
#include "kinds/embedding/model/ranking.hpp"
#include "kinds/embedding/model/ranking_redo.hpp"
#include "kinds/embedding/testing/dense_checks.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"

namespace espalier::embedding {
namespace {

/// With OpenBLAS where there is one; tests/embedding_tables has a stand-in for it.
std::vector<const DenseKit*> dense_kits_here() {
  std::vector<const DenseKit*> kits = {&scalar_dense(), &plain_dense(base::Isa::avx2),
                                       &plain_dense(base::isa())};
  if (blas_dense() != nullptr) kits.push_back(blas_dense());
  return kits;
}

TEST(Dense, KernelsAgreeWithDoublesWithinTheStatedError) {
  for (const DenseKit* const kit : dense_kits_here()) expect_layers_near_doubles(*kit);
}

// Layers that take more than a page, and whose last slab is not whole.
TEST(Dense, LayersOfSeveralPagesAreWhole) {
  base::Random random(2);
  EmbeddingStore store;
  RankingParts parts;
  parts.dense = 2000;
  parts.bottom = {700, 8};
  parts.draw(random);
  const std::string file = parts.file();
  std::vector<float> in(2000);
  for (float& value : in) value = small_number(random);
  for (const DenseKit* const kit : dense_kits_here()) {
    const auto weights =
        ModelWeights::create(store.pool, *read_model_plan(file), file, *kit).value();
    ASSERT_GT(weights->bottom().front().slabs.size(), 2u);
    std::vector<float> out(whole_panels(700));
    weights->run_layer(weights->bottom().front(), in.data(), 2000, out.data(), 1);
    std::vector<Bounded> values;
    for (const float value : in) values.push_back({value, 0});
    const float* floats = parts.floats.data();
    const auto wanted = run_plainly(std::move(values), {700}, floats, true);
    for (std::uint32_t o = 0; o < 700; ++o) {
      ASSERT_NEAR(out[o], wanted[o].value, wanted[o].error) << kit->name << ' ' << o;
    }
  }
}

TEST(Dense, ANaNStaysOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const DenseKit* const kit : dense_kits_here()) {
    const std::vector<float> biases(16, nan);
    const std::vector<float> weights(16, 1);
    const float input = 1;
    std::vector<float> out(16);
    kit->layer({&input, 1, weights.data(), biases.data(), out.data(), 16, 1, 1, 16, true});
    for (const float value : out) EXPECT_TRUE(std::isnan(value)) << kit->name;
  }
}

/// A store with tables of random rows, and a model that reads them.
struct RankingWorld {
  explicit RankingWorld(RankingParts parts_in, std::uint32_t rows = 100)
      : parts(std::move(parts_in)) {
    parts.draw(random);
    for (const std::string& name : parts.tables) {
      tables.push_back(store.create({parts.dimension}, name));
      values.push_back(small_rows(rows));
      EXPECT_TRUE(tables.back()->append(values.back()));
    }
    auto made = create_ranking_model(store.catalog, store.pool, "model", parts.file());
    EXPECT_TRUE(made) << made.error().words;
    model = *made;
  }
  /// Of values that leave the bound on the products' errors small.
  [[nodiscard]] std::vector<std::byte> small_rows(std::uint32_t rows) {
    std::vector<float> numbers(std::size_t{rows} * parts.dimension);
    for (float& number : numbers) number = small_number(random) / 8;
    const auto bytes = std::as_bytes(std::span(numbers));
    return {bytes.begin(), bytes.end()};
  }
  /// Ranks of these queries as they ought to be.
  [[nodiscard]] std::vector<Bounded> wanted(const ModelQueries& queries) const {
    std::vector<Bounded> all;
    for (std::uint32_t q = 0; q < queries.queries; ++q) {
      std::vector<std::vector<Bounded>> pooled;
      for (std::size_t t = 0; t < tables.size(); ++t) pooled.push_back(pool_of(queries, t, q));
      const auto ranks = rank_plainly(
          parts, std::span(queries.dense).subspan(q * parts.dense, parts.dense), pooled);
      all.insert(all.end(), ranks.begin(), ranks.end());
    }
    return all;
  }
  [[nodiscard]] std::vector<Bounded> pool_of(const ModelQueries& queries, std::size_t t,
                                             std::uint32_t q) const {
    const ModelQueries::Bags& bags = queries.tables[t];
    const std::size_t end = q + 1 < queries.queries ? bags.offsets[q + 1] : bags.ids.size();
    const auto count = static_cast<double>(end - bags.offsets[q]);
    std::vector<Bounded> sums(parts.dimension);
    std::vector<float> row(parts.dimension);
    for (std::size_t i = bags.offsets[q]; i < end; ++i) {
      load_row(EmbeddingType::fp32,
               std::span(values[t]).subspan(std::size_t{bags.ids[i]} * parts.dimension * 4,
                                            parts.dimension * 4),
               row);
      for (std::uint32_t c = 0; c < parts.dimension; ++c) {
        sums[c].value += row[c];
        sums[c].error += std::abs(double{row[c]}) * (count + 1) * 0x1p-23;
      }
    }
    if (parts.reduction == Reduction::mean && count != 0) {
      for (Bounded& sum : sums) sum = {sum.value / count, sum.error / count + 0x1p-20};
    }
    return sums;
  }
  [[nodiscard]] ModelQueries random_queries(std::uint32_t count) {
    ModelQueries queries;
    queries.queries = count;
    queries.tables.resize(tables.size());
    for (std::uint32_t i = 0; i < count * parts.dense; ++i)
      queries.dense.push_back(small_number(random));
    for (ModelQueries::Bags& bags : queries.tables) {
      for (std::uint32_t q = 0; q < count; ++q) {
        bags.offsets.push_back(static_cast<std::uint32_t>(bags.ids.size()));
        for (std::uint64_t i = random.below(5); i != 0; --i) {
          bags.ids.push_back(static_cast<std::uint32_t>(random.below(100)));
        }
      }
    }
    return queries;
  }
  [[nodiscard]] TableResult<std::vector<float>> infer_words(const ModelQueries& queries) const {
    std::vector<EmbeddingBags> bags;
    for (const ModelQueries::Bags& of : queries.tables) bags.push_back({of.ids, of.offsets});
    return infer(model, store.catalog, {queries.queries, 0}, words_of(queries.dense, bags));
  }

  base::Random random{3};
  EmbeddingStore store;
  RankingParts parts;
  std::vector<std::shared_ptr<EmbeddingTable>> tables;
  std::vector<std::vector<std::byte>> values;
  std::shared_ptr<RankingObject> model;
};

void expect_ranks(const std::vector<float>& found, const std::vector<Bounded>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i], wanted[i].value, wanted[i].error) << i;
  }
}

TEST(Ranking, AgreesWithDoublesWithinTheStatedError) {
  for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
    for (const std::uint32_t outputs : {1u, 3u}) {
      RankingParts parts;
      parts.dense = 13;
      parts.dimension = 16;
      parts.bottom = {40, 24, 16};
      parts.top = {50, 20, outputs};
      parts.tables = {"a", "b", "c", "d", "e"};
      parts.reduction = reduction;
      RankingWorld world(parts);
      for (const std::uint32_t count : {0u, 1u, 31u, 100u}) {
        const ModelQueries queries = world.random_queries(count);
        const auto found = world.infer_words(queries);
        ASSERT_TRUE(found) << found.error().words;
        const auto wanted = world.wanted(queries);
        expect_ranks(*found, wanted);
        if (count < 100) continue;
        double least = 1, most = 0;
        for (const Bounded& rank : wanted) {
          least = std::min(least, rank.value);
          most = std::max(most, rank.value);
          EXPECT_LT(rank.error, 0.01) << "the bound says something";
        }
        EXPECT_GT(most - least, 0.05) << "ranks differ";
      }
    }
  }
}

TEST(Ranking, TextIsTheSameQueries) {
  RankingWorld world({});
  const std::string text =
      "# features | a | b\n0.5 -1 3 0 1e-2 | 17 99 3 |\n\n1 2 3 4 5|4|8\t8 \r\n-0 0 0 0 0 | | 0";
  ModelQueries queries;
  queries.queries = 3;
  queries.dense = {0.5F, -1, 3, 0, 0.01F, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0};
  queries.tables = {{{17, 99, 3, 4}, {0, 3, 4}}, {{8, 8, 0}, {0, 0, 2}}};
  const auto found = infer(world.model, world.store.catalog, {0, 1}, text);
  ASSERT_TRUE(found) << found.error().words;
  EXPECT_EQ(*found, world.infer_words(queries).value());
  expect_ranks(*found, world.wanted(queries));
}

TEST(Ranking, SaysWhatIsWrongWithQueries) {
  RankingWorld world({});
  const auto words = [&](std::string_view text) {
    const auto found = infer(world.model, world.store.catalog, {0, 1}, text);
    EXPECT_FALSE(found) << text;
    return found ? "" : found.error().words;
  };
  EXPECT_EQ(words("1 2 3 4 5 | 1 | 1\n1 2 3 | 1 | 1"),
            "line 2: 3 dense features, and the model takes 5");
  EXPECT_EQ(words("1 2 3 4 5 | 1"), "line 1: ids of 1 tables, and the model has 2");
  EXPECT_EQ(words("1 2 3 4 5 | 1 | 2 | 3"), "line 1: more tables than the model has");
  EXPECT_EQ(words("1 2 3 4 x5 | 1 | 2"), "line 1: 'x5' is no number that stands here");
  EXPECT_EQ(words("1 2 3 4 5 | -1 | 2"), "line 1: '-1' is no number that stands here");
  EXPECT_EQ(words("1 2 3 4 5 | 1.5 | 2"), "line 1: '1.5' is no number that stands here");
  EXPECT_EQ(words("1 2 3 4 5 | 4294967296 | 2"),
            "line 1: '4294967296' is no number that stands here");
  EXPECT_EQ(words("1 2 3 4 5 | 1 | 100"), "b: id 100 at place 0 is not below the table's 100 rows");
  std::string many;
  for (std::uint32_t i = 0; i <= kQueriesMax; ++i) many += "1 2 3 4 5 | 1 | 2\n";
  EXPECT_EQ(words(many), "line 1025: a request has at most 1024 queries");
  const auto refused = [&](InferShape shape, std::string_view bytes) {
    const auto found = infer(world.model, world.store.catalog, shape, bytes);
    return found ? std::string() : found.error().words;
  };
  const std::string short_by = "the queries have not as many words as their numbers say";
  EXPECT_EQ(refused({1, 0}, ""), short_by);
  EXPECT_EQ(refused({0, 0}, std::string(9, '\0')), short_by);
  EXPECT_EQ(refused({1, 0}, std::string(20 + 8 + 8, '\xff')), short_by);
  EXPECT_EQ(refused({kQueriesMax + 1, 0}, ""), "a request has at most 1024 queries");
  ASSERT_TRUE(world.store.catalog.drop("b"));
  const auto missing = infer(world.model, world.store.catalog, {0, 1}, "1 2 3 4 5 | 1 | 2");
  EXPECT_EQ(missing.error().error.code, Code::not_found);
  EXPECT_EQ(missing.error().words, "the model's embedding table b");
  static_cast<void>(world.store.create({16}, "b"));
  EXPECT_EQ(words("1 2 3 4 5 | 1 | 2"),
            "embedding table b has rows of 16 values, and the model takes 8");
  ASSERT_TRUE(world.store.catalog.drop("model"));
  EXPECT_EQ(infer(world.model, world.store.catalog, {0, 1}, "1 2 3 4 5 | 1 | 2").error().error.code,
            Code::not_found);
}

// Damaged at any byte of its head, or cut anywhere: a sentence, or a model all the same.
TEST(Ranking, FilesThatAreNoneAreRefused) {
  base::Random random(4);
  EmbeddingStore store;
  RankingParts parts;
  parts.draw(random);
  const std::string file = parts.file();
  ASSERT_TRUE(read_model_plan(file));
  EXPECT_EQ(read_model_plan("").error(), "this is no file of a model");
  for (std::size_t bytes = 0; bytes < file.size(); bytes += bytes < 128 ? 1 : 97) {
    EXPECT_FALSE(read_model_plan(std::string_view(file).substr(0, bytes))) << bytes;
  }
  EXPECT_FALSE(read_model_plan(file + "x"));
  for (std::size_t at = 0; at < 100; ++at) {
    for (const char byte : {'\0', '\1', '\x7f', '\xff'}) {
      std::string damaged = file;
      damaged[at] = byte;
      const auto plan = read_model_plan(damaged);
      if (!plan) continue;
      EXPECT_EQ(plan->bottom.back().outputs, plan->dimension);
      EXPECT_TRUE(ModelWeights::create(store.pool, *plan, damaged, scalar_dense()));
    }
  }
  const auto fault = [&](auto change) {
    RankingParts other = parts;
    change(other);
    other.draw(random);
    const auto made = create_ranking_model(store.catalog, store.pool, "m", other.file());
    EXPECT_FALSE(made);
    return made ? "" : made.error().words;
  };
  EXPECT_EQ(fault([](RankingParts& of) { of.bottom.back() = 16; }),
            "the bottom network does not put out as many values as a row has");
  EXPECT_EQ(fault([](RankingParts& of) { of.dimension = 12; }),
            "the dimension is a multiple of 8, up to 1024");
  EXPECT_EQ(fault([](RankingParts& of) { of.tables = {}; }), "a model has 1 to 128 tables");
  EXPECT_EQ(fault([](RankingParts& of) { of.tables[1] = ""; }),
            "names of tables have 1 to 255 bytes");
  EXPECT_EQ(fault([](RankingParts& of) { of.reduction = Reduction::max; }),
            "rows are reduced to their sum or mean");
  EXPECT_EQ(fault([](RankingParts& of) { of.top = {0}; }), "layers have 1 to 8192 outputs");
  EXPECT_EQ(fault([](RankingParts& of) { of.tables.resize(128, "t"); }),
            "the top network takes more than 8192 inputs");
}

// A node may answer anything: a client divides by these numbers, and sizes its answers by them.
TEST(Ranking, ShapesOfNoModelAreFaults) {
  const auto is_fault = [](ModelShape shape) {
    return model_calls::Opened{1, shape}.fault().has_value();
  };
  EXPECT_FALSE(is_fault({1, 1, 1, 1}));
  EXPECT_FALSE(is_fault({kWidthMax, kModelTablesMax, kWidthMax, kWidthMax}));
  for (std::uint32_t ModelShape::* const number :
       {&ModelShape::dense, &ModelShape::tables, &ModelShape::dimension, &ModelShape::outputs}) {
    ModelShape shape{5, 2, 8, 1};
    shape.*number = 0;
    EXPECT_TRUE(is_fault(shape));
    shape.*number = kWidthMax + 1;
    EXPECT_TRUE(is_fault(shape));
  }
}

TEST(Ranking, GivesItsMemoryBack) {
  const auto pages = [](EmbeddingStore& store) {
    return store.pool.stats(memory::relation_class_of(kPageBytes)).in_use;
  };
  RankingWorld world({});
  const std::uint64_t before = pages(world.store);
  RankingParts parts = world.parts;
  parts.dense = 3000;
  parts.bottom = {1000, 8};
  parts.draw(world.random);
  {
    const auto made =
        create_ranking_model(world.store.catalog, world.store.pool, "large", parts.file());
    ASSERT_TRUE(made);
    EXPECT_GT((*made)->numbers().memory_bytes, 12'000'000u);
    EXPECT_GT(pages(world.store), before + 5);
    EXPECT_EQ(create_ranking_model(world.store.catalog, world.store.pool, "large", parts.file())
                  .error()
                  .error.code,
              Code::already_exists);
  }
  ASSERT_TRUE(world.store.catalog.drop("large"));
  EXPECT_EQ(pages(world.store), before);
  parts.bottom = {7000, 8};  // 84 MB, more than the store has
  parts.draw(world.random);
  EXPECT_EQ(create_ranking_model(world.store.catalog, world.store.pool, "large", parts.file())
                .error()
                .error.code,
            Code::out_of_memory);
  EXPECT_EQ(pages(world.store), before);
}

/// All floats of a model, as in its file.
std::vector<float> file_floats_of(const ModelWeights& weights) {
  std::vector<float> floats;
  ModelWeights::Place place;
  while (weights.add_floats(place, floats)) {
  }
  return floats;
}

TEST(Ranking, TellsItsWeightsAsTheFileHasThem) {
  RankingParts parts;
  parts.dense = 3000;
  parts.bottom = {401, 8};  // of several slabs
  RankingWorld world(parts);
  EXPECT_EQ(file_floats_of(world.model->weights()), world.parts.floats);
}

/// What a store has recorded of models, applied to another.
struct ModelsAgain {
  Result<void> apply(std::string_view record) {
    return catalog::apply_record(
        store.catalog, record,
        [&](const catalog::CreatedObject& created) {
          return restore_ranking_model(store.catalog, created);
        },
        [&](const catalog::RedoHead& head, std::string_view own) {
          return catalog::apply_to<RankingObject>(
              store.catalog, head.object,
              [&](RankingObject& model) { return apply_weights(model, store.pool, own); });
        });
  }
  EmbeddingStore store;
};

TEST(Ranking, IsMadeAgainOfItsRecords) {
  catalog::RecordingSink sink;
  EmbeddingStore store;
  store.catalog.record_to(&sink);
  base::Random random(7);
  RankingParts parts;
  parts.dense = 3000;
  parts.bottom = {40, 8};
  parts.draw(random);
  const auto made = create_ranking_model(store.catalog, store.pool, "m", parts.file());
  ASSERT_TRUE(made);
  const auto records = sink.records();
  ASSERT_GE(records.size(), 3u) << "weights come in parts";

  ModelsAgain again;
  for (std::size_t i = 0; i + 1 < records.size(); ++i) ASSERT_TRUE(again.apply(records[i]));
  EXPECT_EQ(model_calls::obtain(again.store.catalog, {"m"}).error().code, Code::not_found);
  const auto model = again.store.catalog.open<RankingObject>("m").value();
  EXPECT_FALSE(model->has_weights());
  EXPECT_EQ(model->numbers().memory_bytes, 0u);
  EXPECT_EQ(infer(model, again.store.catalog, {0, 0}, words_of({}, std::vector<EmbeddingBags>(2)))
                .error()
                .error.code,
            Code::not_found);
  ASSERT_TRUE(again.apply(records.back()));
  ASSERT_TRUE(model->has_weights());
  EXPECT_EQ(file_floats_of(model->weights()), parts.floats);
  for (const std::string_view record : records) ASSERT_TRUE(again.apply(record)) << "twice";
  EXPECT_EQ(model->shape().outputs, (*made)->shape().outputs);

  // Without the first part the others are left out: a checkpoint has all of them.
  ModelsAgain late;
  ASSERT_TRUE(late.apply(records[0]));
  for (std::size_t i = 2; i < records.size(); ++i) ASSERT_TRUE(late.apply(records[i]));
  EXPECT_FALSE(late.store.catalog.open<RankingObject>("m").value()->has_weights());
  // A store that is made again keeps no parts.
  ModelsAgain half;
  ASSERT_TRUE(half.apply(records[0]) && half.apply(records[1]));
  const auto parts_of_it = half.store.catalog.open<RankingObject>("m").value();
  EXPECT_FALSE(parts_of_it->told_file().empty());
  half.store.catalog.record_to(&sink);
  EXPECT_LT(parts_of_it->told_file().capacity(), 100u);
  half.store.catalog.record_to(nullptr);
  // One that lacks weights gives its name to the next.
  EXPECT_TRUE(create_ranking_model(late.store.catalog, late.store.pool, "m", parts.file()));
  EXPECT_EQ(create_ranking_model(late.store.catalog, late.store.pool, "m", parts.file())
                .error()
                .error.code,
            Code::already_exists);
  store.catalog.record_to(nullptr);
}

TEST(Ranking, RecordsOfWeightsThatCannotBeAreRefused) {
  using catalog::RedoFault;
  base::Random random(8);
  RankingParts parts;
  parts.draw(random);
  catalog::RecordingSink sink;
  EmbeddingStore store;
  store.catalog.record_to(&sink);
  ASSERT_TRUE(create_ranking_model(store.catalog, store.pool, "m", parts.file()));
  ModelsAgain again;
  ASSERT_TRUE(again.apply(sink.records()[0]));
  const std::string good(sink.records()[1]);
  const auto fault = [&](std::size_t at, char byte) {
    std::string bad = good;
    bad[at] = byte;
    const auto applied = again.apply(bad);
    return applied ? RedoFault::invalid : static_cast<RedoFault>(applied.error().detail);
  };
  EXPECT_EQ(fault(13, 17), RedoFault::type);
  EXPECT_EQ(fault(8, 0), RedoFault::invalid) << "no such model";
  EXPECT_EQ(fault(24, 1), RedoFault::count);
  EXPECT_EQ(fault(28, 1), RedoFault::reserved);
  EXPECT_EQ(fault(16, 1), RedoFault::invalid) << "not the first: left out";
  for (std::size_t bytes = 0; bytes < sizeof(WeightsRecord); ++bytes) {
    EXPECT_FALSE(read_weights_redo(std::string_view(good).substr(0, bytes)));
  }
  // More than the model has, and a hole.
  const auto part = [&](std::uint64_t first, std::size_t floats) {
    const std::string zeros(floats * sizeof(float), '\0');
    std::string record(weights_record_bytes(floats), '\0');
    const std::uint32_t id = again.store.catalog.open<RankingObject>("m").value()->id();
    write_weights(std::as_writable_bytes(std::span(record)), id, first, zeros);
    const auto applied = again.apply(record);
    return applied ? RedoFault::invalid : static_cast<RedoFault>(applied.error().detail);
  };
  EXPECT_EQ(part(0, parts.floats.size() + 1), RedoFault::count);
  EXPECT_EQ(part(0, 3), RedoFault::invalid);
  EXPECT_EQ(part(4, 1), RedoFault::place);
  EXPECT_EQ(part(3, 1), RedoFault::invalid);
  EXPECT_TRUE(again.apply(good)) << "from the beginning";
  EXPECT_TRUE(again.store.catalog.open<RankingObject>("m").value()->has_weights());
  catalog::CreatedObject created;
  created.kind = ObjectKind::model;
  created.id = 9;
  created.name = "n";
  created.form = "no head";
  EXPECT_EQ(restore_ranking_model(again.store.catalog, created).error().code, Code::corrupt);
  store.catalog.record_to(nullptr);
}

}  // namespace
}  // namespace espalier::embedding
