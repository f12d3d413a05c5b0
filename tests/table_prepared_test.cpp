// SPDX-License-Identifier: Apache-2.0
// Prepared queries, at each place of their tables: other constants give the answers of the query
// with those constants, and invalid ones are refused with a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/places.hpp"
#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using test::texts;

using namespace literals;
using std::chrono::year;
using ::testing::HasSubstr;

using TablePrepared = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TablePrepared, ::testing::ValuesIn(test::kTablePlaces),
                         test::way_name);
INSTANTIATE_TEST_SUITE_P(Device, TablePrepared, ::testing::Values("device"), test::way_name);
/// A device hands on no keys.
class TablePreparedKeys : public TablePrepared {};
INSTANTIATE_TEST_SUITE_P(By, TablePreparedKeys, ::testing::ValuesIn(test::kTablePlaces),
                         test::way_name);

/// Rows of shops from a price and a day on; one constant is no parameter.
Query sales_from(const Table& table, const Expr& price, const Expr& day, const Expr& shop) {
  return table.query()
      .where(col("price") >= price && col("day") >= day && col("shop") != shop && col("id") >= 0)
      .project({"id", "shop", Output(col("price") * price).as("squared"), Output(shop).as("not")});
}

TEST_P(TablePrepared, OtherConstantsGiveOtherAnswers) {
  open();
  const Table table = make("sales");
  fill(table, 2'000);
  const Date first(year(2024) / 1 / 1);
  const auto prepared = sales_from(table, parameter("price", 1.00_dec), parameter("day", first),
                                   parameter("shop", "none"))
                            .prepare();
  ASSERT_TRUE(prepared) << message(prepared.error());
  EXPECT_EQ(prepared->columns()[2].name, "squared");
  const auto plain = [&](Decimal price, Date day, std::string_view shop) {
    return texts(sales_from(table, price, day, std::string(shop)).run());
  };
  EXPECT_EQ(texts(prepared->run()), plain(1.00_dec, first, "none"));
  EXPECT_EQ(texts(prepared->run({{"price", 9.5_dec}})), plain(9.50_dec, first, "none"));
  EXPECT_EQ(texts(prepared->run({{"price", 2}, {"shop", "ab"}})), plain(2.00_dec, first, "ab"));
  const Date later(year(2024) / 2 / 10);
  EXPECT_EQ(texts(prepared->run({{"day", later}, {"shop", ""}})), plain(1.00_dec, later, ""));
  EXPECT_EQ(texts(prepared->run({{"shop", "a longer text than there was"}})),
            plain(1.00_dec, first, "a longer text than there was"));
  EXPECT_EQ(texts(prepared->run()), plain(1.00_dec, first, "none"));
  // Two concurrent ones, and another call.
  auto one = prepared->stream({{"price", 5}});
  auto other = prepared->stream({{"price", 6}});
  ASSERT_TRUE(one && other);
  const auto pulled = [](RowStream& stream) {
    std::size_t rows = 0;
    for (auto piece = stream.next(); piece && *piece; piece = stream.next())
      rows += (*piece)->size();
    return rows;
  };
  EXPECT_EQ(pulled(*one), plain(5.00_dec, first, "none").size());
  EXPECT_EQ(texts(prepared->run({{"price", 7}})), plain(7.00_dec, first, "none"));
  EXPECT_EQ(pulled(*other), plain(6.00_dec, first, "none").size());
}

TEST_P(TablePrepared, WhatCannotBeIsRefusedInWords) {
  open();
  const Table table = make("sales");
  fill(table, 10);
  const Query query =
      table.query().where(col("price") > parameter("price", 1.00_dec) &&
                          col("shop") != parameter("shop", "x") && col("id") > parameter("id", 1));
  const auto prepared = query.prepare();
  ASSERT_TRUE(prepared) << message(prepared.error());
  const auto words = [&](std::vector<Argument> arguments) {
    const auto rows = prepared->run(std::span<const Argument>(arguments));
    return rows ? std::string("ran") : message(rows.error());
  };
  EXPECT_EQ(words({{"price", 1.5_dec}, {"shop", "y"}, {"id", 3}}), "ran");
  EXPECT_EQ(words({{"colour", 1}}), "parameter colour: the query has no such parameter");
  EXPECT_EQ(words({{"id", 1}, {"id", 2}}), "parameter id: it is given twice");
  EXPECT_THAT(words({{"id", "three"}}), HasSubstr("parameter id: three is no integer"));
  EXPECT_THAT(words({{"id", 1.5_dec}}), HasSubstr("parameter id: 1.5 is no integer"));
  EXPECT_THAT(words({{"shop", 1}}), HasSubstr("parameter shop: 1 is no text"));
  EXPECT_THAT(words({{"shop", std::nullopt}}), HasSubstr("null is no value"));
  EXPECT_THAT(words({{"price", 1.005_dec}}), HasSubstr("2 of them behind the point"));
  const std::string long_text(1025, 'x');
  EXPECT_THAT(words({{"shop", long_text}}), HasSubstr("more than 1024 bytes"));
  const auto wrong = table.query().where(col("shop") == parameter("shop", 1)).prepare();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(message(wrong.error()), HasSubstr("filter"));
  const auto keyed = prepared->run({}, {.result_key = *TableKey::parse(std::string(32, '1'))});
  ASSERT_FALSE(keyed);
  EXPECT_THAT(message(keyed.error()), HasSubstr("prepared for a result in clear"));
  // A query with parameters runs as it stands, too.
  EXPECT_TRUE(query.run());
  ASSERT_TRUE(store_->drop_table("sales"));
  EXPECT_NE(words({}), "ran");
  const auto late = query.prepare();
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().error.code == Code::dropped ||
              late.error().error.code == Code::not_found);
}

TEST_P(TablePreparedKeys, TheyComeWithRunsAlone) {
  open();
  const TableKey key = *TableKey::parse(std::string(32, '7'));
  const TableOptions options{.encrypted = true, .key = key, .allow_keys_in_clear = true};
  const auto secret = store_->create_table("secret", *Schema::parse(test::kSalesSchema), options);
  ASSERT_TRUE(secret) << message(secret.error());
  fill(*secret, 500);
  const Query query = secret->query().where(col("id") < parameter("id", 10)).project({"id"});
  const auto plain = query.prepare();
  const auto sealed = query.prepare(ResultForm::encrypted);
  ASSERT_TRUE(plain && sealed);
  EXPECT_EQ(plain->run({{"id", 42}})->size(), 42u);
  EXPECT_EQ(sealed->run({{"id", 43}}, {.result_key = key})->size(), 43u);
  const auto missing = sealed->run();
  ASSERT_FALSE(missing);
  EXPECT_THAT(message(missing.error()), HasSubstr("a run brings its key"));
}

TEST_P(TablePrepared, TenThousandAreLoadedAndDropped) {
  open();
  const Table table = make("sales");
  fill(table, 50);
  const Query query = table.query().where(col("id") < parameter("id", 10)).aggregate({count()});
  const bool quick = std::string_view(GetParam()) == "unix" || embedded();
  for (int i = 0; i < (quick ? 10'000 : 600); ++i) {
    const auto prepared = query.prepare();
    ASSERT_TRUE(prepared) << i << ": " << message(prepared.error());
    if (i % 50 != 0) continue;
    const auto rows = prepared->run({{"id", i % 50 + 3}});
    ASSERT_TRUE(rows) << message(rows.error());
    EXPECT_EQ((*rows)[0].get<std::int64_t>(0), 3);
  }
}

TEST_P(TablePrepared, ASessionKeepsSoManyAndNoMore) {
  open();
  const Table table = make("sales");
  fill(table, 50);
  const Query query = table.query().where(col("id") < parameter("id", 10)).aggregate({count()});
  std::vector<PreparedQuery> kept;
  for (int i = 0; i < 256; ++i) {
    auto prepared = query.prepare();
    ASSERT_TRUE(prepared) << i << ": " << message(prepared.error());
    kept.push_back(*std::move(prepared));
  }
  const auto more = query.prepare();
  if (embedded()) {
    EXPECT_TRUE(more) << "they are memory of this process";
    return;
  }
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().error, base::full_error(base::Places::pipelines, 256));
  EXPECT_THAT(message(more.error()), HasSubstr("keeps 256 pipelines already"));
  EXPECT_TRUE(kept.front().run() && kept.back().run());
  kept.pop_back();
  EXPECT_TRUE(query.prepare());
}

using TablePreparedOnNodes = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TablePreparedOnNodes, ::testing::Values("unix", "shm", "roce"),
                         test::way_name);
TEST_P(TablePreparedOnNodes, TheyAreLoadedAgainWhereThereIsAnotherSession) {
  open();
  const Table table = make("sales");
  fill(table, 50);
  const Query query = table.query().where(col("id") < parameter("id", 10)).aggregate({count()});
  const auto prepared = query.prepare();
  ASSERT_TRUE(prepared && prepared->run());
  std::thread other([&] {
    const auto rows = prepared->run({{"id", 20}});
    ASSERT_TRUE(rows) << message(rows.error());
    EXPECT_EQ((*rows)[0].get<std::int64_t>(0), 20);
  });
  other.join();
  start();
  for (auto listed = store_->tables(); !listed; listed = store_->tables()) {
    ASSERT_EQ(listed.error().error.code, Code::connection_lost);
  }
  EXPECT_FALSE(prepared->run());
  fill(make("sales"), 5);
  const auto rows = prepared->run();
  ASSERT_TRUE(rows) << message(rows.error());
  EXPECT_EQ((*rows)[0].get<std::int64_t>(0), 5);
}

}  // namespace
}  // namespace espalier
