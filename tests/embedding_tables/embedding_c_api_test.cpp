// SPDX-License-Identifier: Apache-2.0
// Embedding tables by the C API, on a store in this process and on a node.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.hpp"
#include "kinds/embedding/testing/ranking_files.hpp"
#include "tests/support/c_api_fixture.hpp"

namespace espalier::test {
namespace {

espalier_code create_embedding(espalier_store* store, espalier_bytes name, std::uint32_t dimension,
                               std::uint32_t type, espalier_embedding** table) {
  espalier_embedding_options options = ESPALIER_EMBEDDING_OPTIONS_INIT;
  options.dimension = dimension;
  options.type = type;
  return espalier_embedding_create(store, name, &options, table);
}

class EmbeddingCApi : public CApi {};
INSTANTIATE_TEST_SUITE_P(At, EmbeddingCApi, ::testing::Values("embedded", "unix"), way_name);

TEST_P(EmbeddingCApi, ReducesRows) {
  espalier_embedding* table = nullptr;
  espalier_embedding* other = nullptr;
  good(create_embedding(store_, b("items"), 8, ESPALIER_FP16, &table));
  bad(create_embedding(store_, b("items"), 8, ESPALIER_FP16, &other), ESPALIER_ALREADY_EXISTS,
      "embedding");
  bad(create_embedding(store_, b("more"), 12, ESPALIER_FP32, &other), ESPALIER_INVALID_ARGUMENT,
      "allows");
  bad(create_embedding(store_, b("more"), 8, 256 + ESPALIER_FP32, &other),
      ESPALIER_INVALID_ARGUMENT, "type is none");
  good(espalier_embedding_open(store_, b("items"), &other));
  EXPECT_EQ(espalier_embedding_dimension(other), 8u);
  EXPECT_EQ(espalier_embedding_type(other), std::uint32_t{ESPALIER_FP16});
  EXPECT_EQ(espalier_embedding_row_bytes(other), 16u);
  std::vector<float> rows(24, 1);
  std::uint64_t first = 9;
  good(espalier_embedding_append(table, rows.data(), rows.size(), &first));
  EXPECT_EQ(first, 0u);
  good(espalier_embedding_append(table, rows.data(), 8, nullptr));
  bad(espalier_embedding_append(table, rows.data(), 7, &first), ESPALIER_INVALID_ARGUMENT,
      "rows have 8 values each");
  rows.assign(8, 4);
  good(espalier_embedding_replace(other, 3, rows.data(), 8));
  bad(espalier_embedding_replace(other, 4, rows.data(), 8), ESPALIER_INVALID_ARGUMENT,
      "row 4 is not below the table's rows");

  const std::uint32_t ids[] = {0, 3, 2};
  const std::uint32_t offsets[] = {0, 2, 3};
  espalier_bags bags = ESPALIER_BAGS_INIT;
  bags.ids = ids;
  bags.id_count = 3;
  bags.offsets = offsets;
  bags.bag_count = 3;
  std::vector<float> results(24);
  good(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, results.data(), 24));
  std::vector<float> wanted(8, 5);
  wanted.resize(16, 1);
  wanted.resize(24, 0);
  EXPECT_EQ(results, wanted);
  const float weights[] = {1, 0.5, -1};
  bags.weights = weights;
  bags.weight_count = 3;
  const std::vector<float> vector(8, 2);
  bags.vector = vector.data();
  bags.vector_count = 8;
  good(espalier_embedding_reduce(table, ESPALIER_INNER_PRODUCT, &bags, results.data(), 3));
  EXPECT_EQ(std::vector<float>(results.begin(), results.begin() + 3),
            (std::vector<float>{48, -16, 0}));
  bad(espalier_embedding_reduce(table, ESPALIER_INNER_PRODUCT, &bags, results.data(), 4),
      ESPALIER_INVALID_ARGUMENT, "the bags come to 3 floats");
  bad(espalier_embedding_reduce(table, ESPALIER_MAX, &bags, results.data(), 24),
      ESPALIER_INVALID_ARGUMENT, "take weights");
  bags = ESPALIER_BAGS_INIT;
  bags.offsets = offsets;
  bags.bag_count = 1;
  bags.ids = ids;
  bags.id_count = 3;
  bags.grouping = 7;
  bad(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, results.data(), 8), ESPALIER_OUTDATED,
      "the table has none");
  EXPECT_EQ(espalier_error_detail(), 0u);
  good(espalier_embedding_drop(store_, b("items")));
  bags.grouping = 0;
  bad(espalier_embedding_reduce(other, ESPALIER_SUM, &bags, results.data(), 8), ESPALIER_NOT_FOUND,
      "nothing of this name");
  espalier_embedding_close(table);
  espalier_embedding_close(other);
  espalier_embedding_close(nullptr);
}

TEST_P(EmbeddingCApi, GroupsRowsAndReducesSeveralTables) {
  espalier_embedding* table = nullptr;
  espalier_embedding* other = nullptr;
  good(create_embedding(store_, b("a"), 8, ESPALIER_FP32, &table));
  good(create_embedding(store_, b("b"), 16, ESPALIER_INT8, &other));
  for (const float value : {1.0F, 2.0F, 4.0F}) {
    const std::vector<float> row(16, value);
    good(espalier_embedding_append(table, row.data(), 8, nullptr));
    good(espalier_embedding_append(other, row.data(), 16, nullptr));
  }
  const std::uint8_t sizes[] = {2};
  const std::uint32_t pair[] = {0, 2};
  std::uint32_t grouping = 0;
  good(espalier_embedding_group(table, sizes, 1, pair, 2, &grouping));
  EXPECT_NE(grouping, 0u);
  bad(espalier_embedding_group(table, sizes, 1, pair, 1, nullptr), ESPALIER_INVALID_ARGUMENT,
      "groups have 2 rows together");
  std::uint32_t ids[] = {0, 1, 2};
  const std::uint32_t plain[] = {0, 1, 2};
  std::uint32_t numbered = 0;
  good(espalier_embedding_renumber(table, ids, 3, &numbered));
  EXPECT_EQ(numbered, grouping);
  const std::uint32_t first[] = {0};
  espalier_bags bags = ESPALIER_BAGS_INIT;
  bags.ids = ids;
  bags.id_count = 3;
  bags.offsets = first;
  bags.bag_count = 1;
  bags.grouping = grouping;
  espalier_bags more = bags;
  more.ids = plain;
  more.grouping = 0;
  const espalier_embedding* tables[] = {table, other};
  const espalier_bags* asked[] = {&bags, &more};
  std::vector<float> results(24);
  good(espalier_embedding_reduce_tables(tables, asked, 2, ESPALIER_SUM, results.data(), 24));
  EXPECT_EQ(results, std::vector<float>(24, 7));
  bad(espalier_embedding_reduce_tables(tables, asked, 2, ESPALIER_SUM, results.data(), 23),
      ESPALIER_INVALID_ARGUMENT, "the bags come to 24 floats");
  bad(espalier_embedding_reduce_tables(tables, asked, 2, ESPALIER_INNER_PRODUCT, results.data(), 2),
      ESPALIER_INVALID_ARGUMENT, "a: the vector");
  good(espalier_embedding_reduce_tables(nullptr, nullptr, 0, ESPALIER_SUM, nullptr, 0));
  asked[1] = nullptr;
  null(espalier_embedding_reduce_tables(tables, asked, 2, ESPALIER_SUM, results.data(), 24),
       "bags");
  tables[0] = nullptr;
  null(espalier_embedding_reduce_tables(tables, asked, 2, ESPALIER_SUM, results.data(), 24),
       "a table");
  null(espalier_embedding_group(nullptr, sizes, 1, pair, 2, nullptr), "table");
  bad(espalier_embedding_group(table, nullptr, 1, pair, 2, nullptr), ESPALIER_INVALID_ARGUMENT,
      "sizes is null, but has a count");
  null(espalier_embedding_renumber(nullptr, ids, 3, &numbered), "table");
  null(espalier_embedding_renumber(table, ids, 3, nullptr), "grouping");
  good(espalier_embedding_group(table, nullptr, 0, nullptr, 0, &grouping));
  EXPECT_EQ(grouping, 0u);
  espalier_embedding_close(table);
  espalier_embedding_close(other);
}

TEST_P(EmbeddingCApi, ATableTakesTheNameOfAnother) {
  espalier_embedding* items = nullptr;
  espalier_embedding* young = nullptr;
  good(create_embedding(store_, b("items"), 8, ESPALIER_FP32, &items));
  good(create_embedding(store_, b("new"), 8, ESPALIER_FP32, &young));
  const std::vector<float> ones(8, 1);
  const std::vector<float> twos(8, 2);
  good(espalier_embedding_append(items, ones.data(), ones.size(), nullptr));
  good(espalier_embedding_append(young, twos.data(), twos.size(), nullptr));
  bad(espalier_embedding_rename(store_, b("new"), b("items"), 0), ESPALIER_ALREADY_EXISTS,
      "embedding");
  bad(espalier_embedding_rename(store_, b("new"), b("items"), 3), ESPALIER_INVALID_ARGUMENT,
      "displaced is not 0, 1 or 2");
  null(espalier_embedding_rename(nullptr, b("new"), b("items"), 1), "store");
  lies(espalier_embedding_rename(store_, kLie, b("items"), 1), "name");
  lies(espalier_embedding_rename(store_, b("new"), kLie, 1), "to");
  good(espalier_embedding_rename(store_, b("new"), b("items"), 1));
  espalier_bags bags = ESPALIER_BAGS_INIT;
  const std::uint32_t id = 0;
  bags.ids = &id;
  bags.id_count = 1;
  bags.offsets = &id;
  bags.bag_count = 1;
  float found[8] = {};
  good(espalier_embedding_reduce(items, ESPALIER_SUM, &bags, found, 8));
  EXPECT_EQ(found[7], 2);
  good(espalier_embedding_reduce(young, ESPALIER_SUM, &bags, found, 8));
  EXPECT_EQ(found[7], 1);
  good(espalier_embedding_rename(store_, b("new"), b("items"), 2));
  good(espalier_embedding_reduce(items, ESPALIER_SUM, &bags, found, 8));
  EXPECT_EQ(found[7], 1);
  espalier_embedding_close(items);
  espalier_embedding_close(young);
}

TEST_P(EmbeddingCApi, RefusesWhatIsMissing) {
  espalier_embedding* table = nullptr;
  const float values[8] = {};
  float results[8];
  null(create_embedding(nullptr, b("t"), 8, ESPALIER_FP32, &table), "store");
  lies(create_embedding(store_, kLie, 8, ESPALIER_FP32, &table), "name");
  null(create_embedding(store_, b("t"), 8, ESPALIER_FP32, nullptr), "table");
  null(espalier_embedding_open(nullptr, b("t"), &table), "store");
  lies(espalier_embedding_open(store_, kLie, &table), "name");
  null(espalier_embedding_open(store_, b("t"), nullptr), "table");
  bad(espalier_embedding_open(store_, b("t"), &table), ESPALIER_NOT_FOUND, "name");
  null(espalier_embedding_drop(nullptr, b("t")), "store");
  lies(espalier_embedding_drop(store_, kLie), "name");
  good(create_embedding(store_, b("t"), 8, ESPALIER_FP32, &table));
  null(espalier_embedding_append(nullptr, values, 8, nullptr), "table");
  bad(espalier_embedding_append(table, nullptr, 8, nullptr), ESPALIER_INVALID_ARGUMENT,
      "values is null, but has a count");
  null(espalier_embedding_replace(nullptr, 0, values, 8), "table");
  bad(espalier_embedding_replace(table, 0, nullptr, 8), ESPALIER_INVALID_ARGUMENT,
      "values is null, but has a count");
  espalier_bags bags = ESPALIER_BAGS_INIT;
  null(espalier_embedding_reduce(nullptr, ESPALIER_SUM, &bags, results, 8), "table");
  null(espalier_embedding_reduce(table, ESPALIER_SUM, nullptr, results, 8), "bags");
  bad(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, nullptr, 8), ESPALIER_INVALID_ARGUMENT,
      "results is null, but has a count");
  bad(espalier_embedding_reduce(table, 256 + ESPALIER_SUM, &bags, results, 0),
      ESPALIER_INVALID_ARGUMENT, "reduction is none");
  bags.id_count = 1;
  bad(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, results, 0), ESPALIER_INVALID_ARGUMENT,
      "bags->ids is null, but has a count");
  bags = ESPALIER_BAGS_INIT;
  bags.struct_bytes = 1;
  EXPECT_EQ(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, results, 0),
            ESPALIER_INVALID_ARGUMENT);
  bags = ESPALIER_BAGS_INIT;
  good(espalier_embedding_reduce(table, ESPALIER_SUM, &bags, results, 0));
  espalier_embedding_close(table);
}

TEST_P(EmbeddingCApi, MakesTablesOfOptions) {
  espalier_embedding* table = nullptr;
  espalier_embedding_options options = ESPALIER_EMBEDDING_OPTIONS_INIT;
  null(espalier_embedding_create(store_, b("t"), nullptr, &table), "options");
  options.durability = 4;
  bad(espalier_embedding_create(store_, b("t"), &options, &table), ESPALIER_INVALID_ARGUMENT,
      "options.durability is none of its kinds");
  options.durability = ESPALIER_DURABILITY_SYNC;  // of a store that keeps nothing
  EXPECT_NE(espalier_embedding_create(store_, b("t"), &options, &table), ESPALIER_OK);
  options.durability = ESPALIER_DURABILITY_NONE;
  good(espalier_embedding_create(store_, b("t"), &options, &table));
  EXPECT_EQ(espalier_embedding_dimension(table), 64u);
  EXPECT_EQ(espalier_embedding_type(table), std::uint32_t{ESPALIER_FP32});
  EXPECT_EQ(espalier_embedding_row_bytes(table), 256u);
  EXPECT_EQ(espalier_embedding_dimension(nullptr), 0u);
  EXPECT_EQ(espalier_embedding_type(nullptr), 0u);
  EXPECT_EQ(espalier_embedding_row_bytes(nullptr), 0u);
  espalier_embedding_close(table);
  options.struct_bytes = 1;
  bad(espalier_embedding_create(store_, b("u"), &options, &table), ESPALIER_INVALID_ARGUMENT,
      "struct_bytes");
}

TEST_P(EmbeddingCApi, RunsManyReductions) {
  espalier_embedding* table = nullptr;
  good(create_embedding(store_, b("items"), 8, ESPALIER_FP32, &table));
  for (const float value : {1.0F, 2.0F, 4.0F}) {
    const std::vector<float> row(8, value);
    good(espalier_embedding_append(table, row.data(), 8, nullptr));
  }
  constexpr std::size_t kRequests = 50;
  const std::uint32_t ids[] = {0, 1, 2, 3};  // the last one is no row's
  const std::uint32_t first[] = {0};
  std::vector<espalier_bags> bags(kRequests, ESPALIER_BAGS_INIT);
  std::vector<espalier_reduction> all(kRequests, ESPALIER_REDUCTION_INIT);
  std::vector<espalier_reduction*> requests;
  std::vector<float> results(kRequests * 8, -1);
  for (std::size_t i = 0; i < kRequests; ++i) {
    bags[i].ids = ids;
    bags[i].id_count = 1 + i % 3;
    bags[i].offsets = first;
    bags[i].bag_count = 1;
    all[i].reduction = i % 2 == 0 ? ESPALIER_SUM : ESPALIER_MAX;
    all[i].bags = &bags[i];
    all[i].results = results.data() + i * 8;
    all[i].count = 8;
    all[i].code = ESPALIER_INTERNAL;
    requests.push_back(&all[i]);
  }
  good(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16));
  for (std::size_t i = 0; i < kRequests; ++i) {
    const float sums[] = {1, 3, 7};
    const float greatest[] = {1, 2, 4};
    EXPECT_EQ(all[i].code, ESPALIER_OK);
    EXPECT_EQ(results[i * 8 + 7], i % 2 == 0 ? sums[i % 3] : greatest[i % 3]) << i;
  }
  bags[7].id_count = 4;
  bags[30].id_count = 4;
  bad(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16),
      ESPALIER_INVALID_ARGUMENT, "request 7: id 3 at place 3 is not below the table's 3 rows");
  EXPECT_EQ(espalier_error_detail(), 3u);
  EXPECT_EQ(all[7].code, ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(all[7].detail, 3u);
  EXPECT_EQ(all[30].code, ESPALIER_INVALID_ARGUMENT);
  EXPECT_EQ(all[8].code, ESPALIER_OK);
  bad(espalier_embedding_reduce_many(table, requests.data(), kRequests, 0),
      ESPALIER_INVALID_ARGUMENT, "");
  all[9].count = 7;
  bad(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16),
      ESPALIER_INVALID_ARGUMENT, "the bags come to 8 floats");
  all[9].bags = nullptr;
  null(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16), "bags");
  all[8].struct_bytes = 8;
  bad(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16),
      ESPALIER_INVALID_ARGUMENT, "a request is shorter");
  requests[7] = nullptr;
  null(espalier_embedding_reduce_many(table, requests.data(), kRequests, 16), "a request");
  bad(espalier_embedding_reduce_many(table, nullptr, 1, 16), ESPALIER_INVALID_ARGUMENT,
      "requests is null, but has a count");
  null(espalier_embedding_reduce_many(nullptr, nullptr, 0, 16), "table");
  good(espalier_embedding_reduce_many(table, nullptr, 0, 16));
  espalier_embedding_close(table);
}

/// On a node that has 64 MiB.
class EmbeddingCApiInLittleMemory : public EmbeddingCApi {
 protected:
  EmbeddingCApiInLittleMemory() { config_.memory.limit = std::uint64_t{64} << 20; }
};
INSTANTIATE_TEST_SUITE_P(At, EmbeddingCApiInLittleMemory, ::testing::Values("unix"), way_name);

TEST_P(EmbeddingCApiInLittleMemory, RefusesRowsThatFindNone) {
  espalier_embedding* table = nullptr;
  good(create_embedding(store_, b("items"), 64, ESPALIER_FP32, &table));
  const std::vector<float> rows(std::size_t{1} << 18, 1);  // 1 MiB
  std::uint64_t first = 0;
  espalier_code code = ESPALIER_OK;
  for (int mib = 0; mib < 64 && code == ESPALIER_OK; ++mib) {
    code = espalier_embedding_append(table, rows.data(), rows.size(), &first);
  }
  bad(code, ESPALIER_OUT_OF_MEMORY, "The memory limit is reached and nothing was changed");
  espalier_embedding_stats stats = ESPALIER_EMBEDDING_STATS_INIT;
  good(espalier_embedding_get_stats(table, &stats));
  EXPECT_EQ(stats.rows, first + rows.size() / 64);
  espalier_embedding_close(table);
}

TEST_P(EmbeddingCApi, TellsNumbers) {
  espalier_embedding* table = nullptr;
  good(create_embedding(store_, b("items"), 8, ESPALIER_FP32, &table));
  const std::vector<float> rows(24, 1);
  good(espalier_embedding_append(table, rows.data(), rows.size(), nullptr));
  const std::uint8_t pair[] = {2};
  const std::uint32_t ids[] = {0, 1};
  good(espalier_embedding_group(table, pair, 1, ids, 2, nullptr));
  espalier_embedding_stats stats = ESPALIER_EMBEDDING_STATS_INIT;
  good(espalier_embedding_get_stats(table, &stats));
  EXPECT_EQ(stats.rows, 3u);
  EXPECT_EQ(stats.pages, 1u);
  EXPECT_EQ(stats.groups, 1u);
  EXPECT_EQ(stats.grouped_rows, 2u);
  EXPECT_EQ(stats.grouping_groups, 0u);
  null(espalier_embedding_get_stats(nullptr, &stats), "table");
  null(espalier_embedding_get_stats(table, nullptr), "stats");
  stats.struct_bytes = 1;
  EXPECT_EQ(espalier_embedding_get_stats(table, &stats), ESPALIER_INVALID_ARGUMENT);
  espalier_embedding_close(table);
}

TEST_P(EmbeddingCApi, RanksQueries) {
  for (const char* const name : {"a", "b"}) {
    espalier_embedding* table = nullptr;
    good(create_embedding(store_, b(name), 8, ESPALIER_FP32, &table));
    const std::vector<float> rows(80, 0.5F);
    good(espalier_embedding_append(table, rows.data(), rows.size(), nullptr));
    espalier_embedding_close(table);
  }
  embedding::RankingParts parts;
  base::Random random(3);
  parts.draw(random);
  const std::string file = parts.file();
  espalier_model* model = nullptr;
  bad(espalier_model_create(store_, b("m"), b("no file"), &model), ESPALIER_INVALID_ARGUMENT,
      "no file of a model");
  good(espalier_model_create(store_, b("m"), b(file), &model));
  espalier_model_close(model);
  good(espalier_model_open(store_, b("m"), &model));
  EXPECT_EQ(espalier_model_dense(model), 5u);
  EXPECT_EQ(espalier_model_tables(model), 2u);
  EXPECT_EQ(espalier_model_outputs(model), 1u);
  EXPECT_EQ(espalier_model_dense(nullptr), 0u);

  const std::vector<float> dense = {1, 2, 3, 4, 5, 0, 0, 0, 0, 0};
  const std::uint32_t ids[] = {1, 2, 3};
  const std::uint32_t offsets[] = {0, 2};
  espalier_bags bags = ESPALIER_BAGS_INIT;
  bags.ids = ids;
  bags.id_count = 3;
  bags.offsets = offsets;
  bags.bag_count = 2;
  const espalier_bags* const tables[] = {&bags, &bags};
  std::vector<float> ranks(2, -1);
  good(espalier_model_infer(model, dense.data(), 10, tables, 2, ranks.data(), 2));
  for (const float rank : ranks) EXPECT_TRUE(rank > 0 && rank < 1) << rank;
  std::vector<float> again(2, -1);
  good(espalier_model_infer_text(model, b("1 2 3 4 5 | 1 2 | 1 2\n0 0 0 0 0 | 3 | 3\n"),
                                 again.data(), 2));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(again[i], ranks[i], 1e-6);
  bad(espalier_model_infer_text(model, b("1 2 3 4 5 | 1 2 | 1 2\n"), again.data(), 2),
      ESPALIER_INVALID_ARGUMENT, "the queries come to 1 floats");
  bad(espalier_model_infer(model, dense.data(), 9, tables, 2, ranks.data(), 2),
      ESPALIER_INVALID_ARGUMENT, "a query has 5 dense features");
  bad(espalier_model_infer(model, dense.data(), 10, tables, 1, ranks.data(), 2),
      ESPALIER_INVALID_ARGUMENT, "the model has 2 tables");
  bad(espalier_model_infer(model, nullptr, 10, tables, 2, ranks.data(), 2),
      ESPALIER_INVALID_ARGUMENT, "dense is null, but has a count");
  const espalier_bags* const none[] = {&bags, nullptr};
  null(espalier_model_infer(model, dense.data(), 10, none, 2, ranks.data(), 2), "bags");
  null(espalier_model_infer(nullptr, dense.data(), 10, tables, 2, ranks.data(), 2), "model");
  null(espalier_model_infer_text(nullptr, b(""), ranks.data(), 0), "model");
  null(espalier_model_create(store_, b("n"), b(file), nullptr), "model");
  null(espalier_model_open(store_, b("m"), nullptr), "model");
  null(espalier_model_drop(nullptr, b("m")), "store");
  espalier_model_close(model);
  good(espalier_model_drop(store_, b("m")));
  EXPECT_EQ(espalier_model_open(store_, b("m"), &model), ESPALIER_NOT_FOUND);
}

}  // namespace
}  // namespace espalier::test
