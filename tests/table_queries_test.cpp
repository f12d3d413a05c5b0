// SPDX-License-Identifier: Apache-2.0
// Queries of the public API, at each place of their tables: answers and refusals are the same in
// this process and on a node, and equal those of the reference, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "kinds/table/reference.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/testing/random_pipeline.hpp"
#include "regex/regex_cache.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/table_question.hpp"
#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using namespace literals;
using std::chrono::year;
using ::testing::HasSubstr;

using TableQueries = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TableQueries, ::testing::ValuesIn(test::kTablePlaces), test::way_name);
INSTANTIATE_TEST_SUITE_P(Device, TableQueries, ::testing::Values("device"), test::way_name);

// --- conformance ---------------------------------------------------------------------------------

/// Whether a value of an answer is the reference's, to the bit.
::testing::AssertionResult same(const Value& found, const table::Value& wanted,
                                const table::ValueType& type) {
  const auto differs = [&] {
    return ::testing::AssertionFailure() << found.to_text() << ", not " << to_text(wanted, type);
  };
  if (wanted.null != found.is_null()) return differs();
  if (wanted.null) return ::testing::AssertionSuccess();
  if (const auto* real = found.get_if<double>()) {
    const bool both_nan = std::isnan(*real) && std::isnan(wanted.real);
    const bool equal =
        std::bit_cast<std::uint64_t>(*real) == std::bit_cast<std::uint64_t>(wanted.real);
    return both_nan || equal ? ::testing::AssertionSuccess() : differs();
  }
  return found.to_text() == to_text(wanted, type) ? ::testing::AssertionSuccess() : differs();
}

/// Holds the rows of an answer against the reference's, from row `first` on.
void expect_rows(const Rows& rows, const table::Pipeline& pipeline,
                 const table::ReferenceResult& wanted, std::size_t first) {
  ASSERT_LE(first + rows.size(), wanted.count);
  ASSERT_EQ(rows.columns().size(), pipeline.items.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::byte* const row = wanted.rows.data() + (first + i) * pipeline.result.row_bytes();
    for (std::size_t c = 0; c < pipeline.items.size(); ++c) {
      const table::Item& item = pipeline.items[c];
      ASSERT_TRUE(same(rows[i].value(c), answer_value(pipeline, item, row), answer_type(item)))
          << "row " << first + i << ", column " << rows.columns()[c].name;
    }
  }
}

/// Whether the query is refused for an invalid regular expression.
bool is_refused_for_its_regexes(const Query& query, table::Pipeline& pipeline) {
  regex::RegexCache regexes;
  const auto compiled = compile_regexes(pipeline, regexes);
  const bool searches = std::ranges::any_of(pipeline.nodes, [](const table::Node& node) {
    return node.kind == wire::ExpressionKind::matches;
  });
  if (!searches || compiled) return false;
  const auto refused = query.run();
  EXPECT_FALSE(refused);
  if (refused) return true;
  EXPECT_EQ(refused.error().error.code, Code::invalid_argument);
  EXPECT_EQ(refused.error().words, compiled.error().message());
  return true;
}

void expect_answer(const Query& query, const table::Pipeline& pipeline,
                   const table::MemoryRows& rows) {
  table::MemorySource source(rows);
  const auto wanted = run_reference(pipeline, source);
  const auto found = query.run();
  if (!wanted) {
    ASSERT_FALSE(found) << "should be refused: " << wanted.error().message();
    EXPECT_EQ(found.error().error.code, Code::invalid_argument);
    EXPECT_EQ(found.error().words, wanted.error().message());
    return;
  }
  ASSERT_TRUE(found) << message(found.error());
  EXPECT_EQ(found->size(), wanted->count);
  expect_rows(*found, pipeline, *wanted, 0);
  auto stream = query.stream();
  ASSERT_TRUE(stream) << message(stream.error());
  std::size_t streamed = 0;
  for (;;) {
    const auto piece = stream->next();
    ASSERT_TRUE(piece) << message(piece.error());
    if (!*piece) break;
    ASSERT_FALSE((*piece)->empty());
    expect_rows(**piece, pipeline, *wanted, streamed);
    streamed += (*piece)->size();
  }
  EXPECT_EQ(streamed, wanted->count);
}

TEST_P(TableQueries, AnswersAreThoseOfTheReference) {
  open();
  const std::uint64_t seed = test::seed_from_environment(7);
  SCOPED_TRACE(test::seed_text(seed));
  base::Random random(seed);
  int answered = 0;
  for (std::uint64_t round = 0; round < test::steps_or(8); ++round) {
    const table::Schema schema = table::random_small_schema(random);
    const table::MemoryRows rows = table::random_small_rows(
        random, schema, random.below(round == 0 ? 6000 : 800), random.chance(0.3) ? 10 : 0);
    const Table table = make("t" + std::to_string(round), schema.to_text());
    EXPECT_EQ(test::append(table, rows, random), rows.size());
    for (int queries = 0; queries < 12; ++queries) {
      const table::PipelineBuilder builder = table::random_builder(random, schema);
      const auto bytes = builder.finish();
      if (!bytes) continue;
      const auto query = test::query_of(table.query(), builder.message(), schema);
      if (!query) continue;
      auto pipeline = table::check_pipeline(*bytes, schema);
      if (!pipeline) {
        const auto refused = query->run();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().words, pipeline.error().message());
        continue;
      }
      if (is_refused_for_its_regexes(*query, *pipeline)) continue;
      expect_answer(*query, *pipeline, rows);
      ++answered;
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(store_->drop_table(table.name()));
  }
  EXPECT_GT(answered, 20);
}

// --- queries -------------------------------------------------------------------------------------

TEST_P(TableQueries, QueriesFilterGroupAndCompute) {
  open();
  const Table table = make("sales");
  fill(table, 2000);
  const auto rows = table.query()
                        .where(col("price") > 1.99_dec && col("shop").in({"ab", "cd"}))
                        .group_by({"shop"}, {count(), sum(col("price")).as("total"),
                                             min(col("day")), avg(col("id"))})
                        .run();
  ASSERT_TRUE(rows) << message(rows.error());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ(rows->columns()[0].name, "shop");
  EXPECT_EQ(rows->columns()[1].name, "count");
  EXPECT_EQ(rows->columns()[2].name, "total");
  EXPECT_EQ(rows->columns()[3].name, "min(day)");
  for (const Row row : *rows) {
    const bool is_ab = row.get<std::string_view>(0) == "ab";
    std::int64_t count = 0;
    Int128 total = 0;
    double ids = 0;
    for (std::int64_t i = 0; i < 2000; ++i) {
      if (i % 7 == 0 || i % 1000 <= 199 || i % 3 != (is_ab ? 0 : 1)) continue;
      ++count;
      total += i % 1000;
      ids += static_cast<double>(i);
    }
    EXPECT_EQ(row.get<std::int64_t>(1), count);
    EXPECT_EQ(row.get<Decimal>(2), (Decimal{total, 2}));
    EXPECT_EQ(row.get<double>(4), ids / static_cast<double>(count));
  }
  const auto twice = table.query()
                         .project({"id", Output(col("price") * 2 - 1).as("twice"), -col("id")})
                         .where(!(col("day") < Date(year(2024) / 2 / 19)) || col("id") == 3)
                         .limit(3)
                         .run();
  ASSERT_TRUE(twice) << message(twice.error());
  ASSERT_EQ(twice->size(), 3u);
  EXPECT_EQ((*twice)[0].get<std::int64_t>(2), -3);
  EXPECT_EQ((*twice)[1].get<std::optional<Decimal>>(1), std::nullopt);  // id 49
  const auto shops = table.query().project({"shop"}).distinct().run();
  ASSERT_TRUE(shops);
  EXPECT_EQ(shops->size(), 3u);
}

TEST_P(TableQueries, QueriesThatCannotBeAreRefusedInWords) {
  open();
  const Table table = make("sales");
  fill(table, 10);
  const auto words = [](const Query& query) {
    const auto rows = query.run();
    return rows ? std::string("ran") : message(rows.error());
  };
  EXPECT_EQ(words(table.query().where(col("colour") == "red")), "the table has no column colour");
  EXPECT_THAT(words(table.query().where(col("shop") == 1)), HasSubstr("filter"));
  EXPECT_THAT(words(table.query().where(col("id"))), HasSubstr("filter"));
  EXPECT_EQ(words(table.query().group_by({}, {})),
            "without a key or an aggregate there are no groups");
  EXPECT_EQ(words(table.query().project({})), "a query without columns");
  EXPECT_THAT(words(table.query().where(col("note").like("\\"))), HasSubstr("a backslash"));
  EXPECT_THAT(words(table.query().project({col("id") * std::numeric_limits<std::int64_t>::max()})),
              HasSubstr("overflow"));
  Expr large = col("id") == 0;
  for (int i = 0; i < 20; ++i) large = large || large;
  EXPECT_EQ(words(table.query().where(large)), "the expression is too large");
  Expr long_one = col("id") == -1;
  for (int i = 0; i < 60; ++i) long_one = long_one || col("id") == i;
  EXPECT_EQ(words(table.query().where(long_one)), "ran");
  const auto lines = table.query().where(col("id") > 3).limit(2).explain();
  ASSERT_TRUE(lines);
  EXPECT_EQ((*lines)[1], "filter: id > 3");
}

// --- streams -------------------------------------------------------------------------------------

TEST_P(TableQueries, StreamsArePulledBesideOtherCalls) {
  open();
  const Table table = make("sales");
  fill(table, 60'000);
  auto one = table.query().stream();
  auto other = table.query().project({"id"}).stream();
  ASSERT_TRUE(one && other);
  std::int64_t next_of_one = 0;
  std::int64_t next_of_other = 0;
  bool more = true;
  while (more) {
    more = false;
    const auto take = [&more](RowStream& stream, std::int64_t& expected) {
      const auto rows = stream.next();
      ASSERT_TRUE(rows) << message(rows.error());
      if (!*rows) return;
      more = true;
      for (const Row row : **rows) ASSERT_EQ(row.get<std::int64_t>(0), expected++);
    };
    take(*one, next_of_one);
    take(*other, next_of_other);
    EXPECT_EQ(*table.rows(), 60'000u);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(next_of_one, 60'000);
  EXPECT_EQ(next_of_other, 60'000);
  EXPECT_EQ(one->stats().rows_sent, 60'000u);
  EXPECT_EQ(*one->next(), std::nullopt);  // it stays ended
}

TEST_P(TableQueries, LimitsEndStreamsEarlyAndStatsAreWhole) {
  open();
  const Table table = make("sales");
  fill(table, 100'000);
  auto stream = table.query().limit(30'000).stream();
  ASSERT_TRUE(stream) << message(stream.error());
  std::size_t rows = 0;
  for (;;) {
    const auto piece = stream->next();
    ASSERT_TRUE(piece) << message(piece.error());
    if (!*piece) break;
    rows += (*piece)->size();
  }
  EXPECT_EQ(rows, 30'000u);
  EXPECT_EQ(stream->stats().rows_sent, 30'000u);
  EXPECT_GE(stream->stats().rows_read, 30'000u);
  EXPECT_LT(stream->stats().rows_read, 100'000u);
  EXPECT_GT(stream->stats().memory_bytes, 0u);
}

TEST_P(TableQueries, StreamsEndWhenTheyAreNotWantedAnyMore) {
  open();
  const Table table = make("sales");
  fill(table, 100'000);
  for (int i = 0; i < 20; ++i) {  // more than a connection has rings
    auto stream = table.query().stream();
    ASSERT_TRUE(stream) << message(stream.error());
    ASSERT_TRUE(stream->next());
    if (i % 2 != 0) continue;
    stream->cancel();
    EXPECT_EQ(*stream->next(), std::nullopt);
  }
  std::stop_source stop;
  auto stopped = table.query().stream({.stop = stop.get_token()});
  ASSERT_TRUE(stopped);
  ASSERT_TRUE(stopped->next());
  stop.request_stop();
  const auto after = stopped->next();
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().error, (Error{Code::system, 0, ECANCELED}));
  EXPECT_FALSE(stopped->next());
  const auto late = table.query().run({.deadline = std::chrono::steady_clock::now()});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().error, (Error{Code::system, 0, ETIMEDOUT}));
  const auto in_time = table.query().aggregate({count()}).run(
      {.deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5)});
  ASSERT_TRUE(in_time) << message(in_time.error());
  EXPECT_EQ((*in_time)[0].get<std::int64_t>(0), 100'000);
}

TEST_P(TableQueries, AStreamOfATableThatIsDroppedSaysSo) {
  open();
  const Table table = make("t", "id i64 not null, rest char(500) not null");
  RowWriter writer = table.writer();
  for (int i = 0; i < 20'000; ++i) writer.add(i, "x");
  ASSERT_TRUE(writer.commit());
  auto stream = table.query().stream();
  ASSERT_TRUE(stream);
  ASSERT_TRUE(stream->next());
  ASSERT_TRUE(store_->drop_table("t"));
  std::optional<TableError> error;
  for (int i = 0; i < 1000 && !error; ++i) {
    const auto rows = stream->next();
    if (!rows) error = rows.error();
    if (rows && !*rows) break;
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->error.code, Code::dropped);
}

}  // namespace
}  // namespace espalier
