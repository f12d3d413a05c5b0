// SPDX-License-Identifier: Apache-2.0
// The tables of the public API at each place: rows, names and handles behave the same in this
// process and on a node over each transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/support/tables_anywhere.hpp"

namespace espalier {
namespace {

using namespace literals;
using std::chrono::year;
using ::testing::HasSubstr;

constexpr std::uint64_t kSmallMemoryBytes = std::uint64_t{32} << 20;

using TableCalls = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TableCalls, ::testing::ValuesIn(test::kTablePlaces), test::way_name);
INSTANTIATE_TEST_SUITE_P(Device, TableCalls, ::testing::Values("device"), test::way_name);
using TableCallsOnNodes = test::TablesAnywhere;
INSTANTIATE_TEST_SUITE_P(By, TableCallsOnNodes, ::testing::ValuesIn(test::kWays), test::way_name);

// --- rows ----------------------------------------------------------------------------------------

TEST_P(TableCalls, RowsComeBackWithTheirTypes) {
  open();
  const Table table = make("sales");
  RowWriter writer = table.writer();
  writer.add(1, "ab", 1.50_dec, Date(year(2024) / 1 / 31), "first");
  writer.add(2, std::string("cd"), 4, std::nullopt, std::optional<std::string>());
  const auto first = writer.commit();
  ASSERT_TRUE(first) << message(first.error());
  EXPECT_EQ(*first, 0u);
  EXPECT_EQ(writer.size(), 0u);
  EXPECT_EQ(*writer.commit(), 2u);  // of no rows
  EXPECT_EQ(*table.rows(), 2u);
  const auto rows = table.query().run();
  ASSERT_TRUE(rows) << message(rows.error());
  ASSERT_EQ(rows->size(), 2u);
  const Row one = (*rows)[0];
  EXPECT_EQ(one.get<std::int64_t>(0), 1);
  EXPECT_EQ(one.get<std::string_view>(1), "ab");
  EXPECT_EQ(one.get<Decimal>(2), 1.5_dec);
  EXPECT_EQ(one.get<Date>(3), Date(year(2024) / 1 / 31));
  EXPECT_EQ(one.get<std::string>(*rows->find("note")), "first");
  const Row other = rows->row(1);
  EXPECT_EQ(other.get<Decimal>(2).to_text(), "4.00");
  EXPECT_TRUE(other.is_null(3));
  EXPECT_EQ(other.get<std::optional<Date>>(3), std::nullopt);
  EXPECT_EQ(other.value(4).to_text(), "NULL");
}

TEST_P(TableCalls, WrongRowsAreToldByColumnAndNothingIsAppended) {
  open();
  const Table table = make("t", "a i8 not null, d decimal(4,2), f float, s text(3), w date");
  RowWriter writer = table.writer();
  const auto words = [&](auto... values) {
    const auto added = writer.add(values...);
    return added ? std::string("added") : message(added.error());
  };
  EXPECT_EQ(words(1, 1, 1, "abc", Date{}), "added");
  EXPECT_EQ(words(300, 1, 1, "a", Date{}), "row 1: column a: 300 is outside -128 to 127");
  EXPECT_EQ(words(std::nullopt, 1, 1, "a", Date{}),
            "row 2: column a: null, and the column is not null");
  EXPECT_EQ(words(1, 1.005_dec, 1, "a", Date{}),
            "row 3: column d: 1.005 has more than 2 digits behind the point");
  EXPECT_EQ(words(1, 100, 1, "a", Date{}),
            "row 4: column d: 100 has more than 4 digits at a scale of 2");
  EXPECT_EQ(words(1, 1.5, 1, "a", Date{}), "row 5: column d: 1.5 is no decimal(4,2)");
  EXPECT_THAT(words(1, 1, 16'777'217, "a", Date{}), HasSubstr("row 6: column f: 16777217 is no"));
  EXPECT_EQ(words(1, 1, 1, "abcd", Date{}), "row 7: column s: 'abcd' has 4 bytes, more than 3");
  EXPECT_EQ(words(1, 1, 1, "a", Date(year(10'000) / 1 / 1)),
            "row 8: column w: 10000-01-01 is outside the years 1 to 9999");
  EXPECT_EQ(words(1, 1, 1, "a", "2024-01-01"), "row 9: column w: '2024-01-01' is no date");
  EXPECT_EQ(words(1, 1), "row 10: 2 values for 5 columns");
  EXPECT_EQ(words(std::uint64_t{1} << 63, 1, 1, "a", Date{}),
            "row 11: column a: 9223372036854775808 is no i8");
  const auto refused = writer.commit();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().words, "row 1: column a: 300 is outside -128 to 127");
  EXPECT_EQ(*table.rows(), 0u);
  writer.leave_out_refused();
  ASSERT_TRUE(writer.commit());
  EXPECT_EQ(*table.rows(), 1u);
}

TEST_P(TableCalls, AnAppendThatFindsNoMemoryChangesNothing) {
  open(kSmallMemoryBytes);
  const Table table = make("t", "id i64 not null, rest char(1000) not null");
  std::optional<TableError> failed;
  std::uint64_t rows = 0;
  while (!failed && rows * 1000 < 2 * kSmallMemoryBytes) {
    RowWriter writer = table.writer();
    for (int i = 0; i < 5000; ++i) writer.add(i, "x");
    const auto first = writer.commit();
    if (first) {
      EXPECT_EQ(*first, rows);
      rows += 5000;
    } else {
      failed = first.error();
      EXPECT_EQ(writer.size(), 5000u);
    }
  }
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->error.code, Code::out_of_memory);
  EXPECT_EQ(*table.rows(), rows);
  const auto counted = table.query().aggregate({count()}).run();
  ASSERT_TRUE(counted) << message(counted.error());
  EXPECT_EQ((*counted)[0].get<std::int64_t>(0), static_cast<std::int64_t>(rows));
  ASSERT_TRUE(store_->drop_table("t"));
  EXPECT_TRUE(store_->create_table("t", table.schema()));
}

// --- the store -----------------------------------------------------------------------------------

TEST_P(TableCalls, TablesAreMadeListedDescribedAndDropped) {
  open();
  const Table table = make("sales");
  fill(table, 1000);
  make("b", "x double");
  EXPECT_EQ(store_->create_table("b", table.schema()).error().error.code, Code::already_exists);
  EXPECT_EQ(store_->create_table("", table.schema()).error().error.code, Code::invalid_argument);
  EXPECT_EQ(store_->open_table("c").error().error.code, Code::not_found);
  EXPECT_EQ(store_->open_table(std::string(256, 'x')).error().error.code, Code::invalid_argument);
  EXPECT_EQ(store_->drop_table("c").error().error.code, Code::not_found);
  const auto listed = store_->tables();
  ASSERT_TRUE(listed) << message(listed.error());
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[0].name, "b");
  EXPECT_EQ((*listed)[1].schema.to_text(), test::kSalesSchema);
  const auto again = store_->open_table("sales");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->schema(), table.schema());
  const auto described = again->describe();
  ASSERT_TRUE(described);
  EXPECT_EQ(described->rows, 1000u);
  EXPECT_EQ(described->pages, 1u);
  EXPECT_GT(described->memory_bytes, std::uint64_t{2} << 20);
}

TEST_P(TableCalls, AHandleNeverReadsAnotherTableOfItsName) {
  open();
  const Table gone = make("t");
  fill(gone, 100);
  ASSERT_TRUE(store_->drop_table("t"));
  make("t");
  const auto is_gone = [](const auto& result) {
    return !result && (result.error().error.code == Code::dropped ||
                       result.error().error.code == Code::not_found);
  };
  EXPECT_TRUE(is_gone(gone.rows()));
  EXPECT_TRUE(is_gone(gone.query().run()));
  RowWriter writer = gone.writer();
  writer.add(1, "a", 1, std::nullopt, "x");
  EXPECT_TRUE(is_gone(writer.commit()));
  EXPECT_EQ(*store_->open_table("t")->rows(), 0u);
}

TEST_P(TableCallsOnNodes, AHandleGoesOnWhereItsNodeWasReplaced) {
  open();
  const Table table = make("t");
  fill(table, 100);
  start();
  for (auto listed = store_->tables(); !listed; listed = store_->tables()) {
    ASSERT_EQ(listed.error().error.code, Code::connection_lost);
  }
  make("other");  // takes the number that the table had
  EXPECT_EQ(table.rows().error().error.code, Code::not_found);
  make("t");
  EXPECT_EQ(*table.rows(), 0u);
  fill(table, 10);
  EXPECT_EQ(*table.rows(), 10u);
  ASSERT_TRUE(store_->drop_table("t"));
  EXPECT_FALSE(table.rows());
  EXPECT_EQ(*store_->open_table("other")->rows(), 0u);
}

TEST_P(TableCalls, HandlesMayOutliveTheirStore) {
  open();
  std::optional<Table> table = make("t");
  fill(*table, 10);
  auto stream = table->query().stream();
  ASSERT_TRUE(stream);
  if (!embedded()) stream = std::unexpected(TableError{});
  store_.reset();
  if (embedded()) {
    EXPECT_EQ((*stream->next())->size(), 10u);
  } else {
    EXPECT_EQ(table->rows().error().error.code, Code::connection_lost);
  }
  table.reset();
}

}  // namespace
}  // namespace espalier
