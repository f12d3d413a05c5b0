// SPDX-License-Identifier: Apache-2.0
// Queries of lineitem against SQLite on the same rows: Q6, Q1, LIKE and distinct, from the same CSV
// text. SQLite has no decimals, so it stores integers of cents, and returns such.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lineitem/lineitem.hpp"
#include "tests/support/seed.hpp"
#include "tools/testing/node_fixture.hpp"

namespace espalier::tools {
namespace {

using Fields = std::vector<std::string>;

Fields split(std::string_view text, char by) {
  Fields fields;
  while (true) {
    const std::size_t end = text.find(by);
    fields.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

/// "12.34" as 1234, for any scale.
std::string without_point(std::string text) {
  std::erase(text, '.');
  const std::size_t digit = std::min(text.find_first_not_of('0'), text.size() - 1);
  return text.substr(digit);
}

/// The table lineitem in memory. Errors: throws std::runtime_error.
class SqliteLineitem {
 public:
  explicit SqliteLineitem(const Fields& csv_lines) {
    sqlite3* opened = nullptr;
    check(sqlite3_open(":memory:", &opened), opened);
    database_.reset(opened);
    rows("pragma case_sensitive_like = 1");
    const Fields names = split(csv_lines.front(), ',');
    std::string columns;
    std::string values;
    for (const std::string& name : names) {
      columns += (columns.empty() ? "" : ", ") + name;
      values += values.empty() ? "?" : ", ?";
    }
    rows("create table lineitem (" + columns + ")");
    rows("begin");
    const Statement insert = prepare("insert into lineitem values (" + values + ")");
    for (std::size_t i = 1; i < csv_lines.size(); ++i) add(insert.get(), split(csv_lines[i], ','));
    rows("commit");
  }

  /// The answer's rows, their fields with commas between.
  Fields rows(const std::string& query) const {
    const Statement statement = prepare(query);
    Fields found;
    int state = sqlite3_step(statement.get());
    for (; state == SQLITE_ROW; state = sqlite3_step(statement.get())) {
      std::string& row = found.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
        const void* const text = sqlite3_column_text(statement.get(), i);
        if (i != 0) row += ',';
        row.append(static_cast<const char*>(text),
                   static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), i)));
      }
    }
    check(state == SQLITE_DONE ? SQLITE_OK : state, database_.get());
    return found;
  }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

  static void check(int state, sqlite3* database) {
    if (state != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(database));
  }
  [[nodiscard]] Statement prepare(const std::string& query) const {
    sqlite3_stmt* made = nullptr;
    check(sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &made, nullptr), database_.get());
    return {made, &sqlite3_finalize};
  }
  void add(sqlite3_stmt* insert, const Fields& fields) {
    constexpr int kNumbers = 8;  // four keys, then four decimals
    check(sqlite3_reset(insert), database_.get());
    for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
      const std::string& text = fields[static_cast<std::size_t>(i)];
      check(i < kNumbers ? sqlite3_bind_int64(insert, i + 1, std::stoll(without_point(text)))
                         : sqlite3_bind_text(insert, i + 1, text.data(),
                                             static_cast<int>(text.size()), nullptr),
            database_.get());
    }
    if (sqlite3_step(insert) != SQLITE_DONE) check(SQLITE_ERROR, database_.get());
  }

  std::unique_ptr<sqlite3, decltype(&sqlite3_close)> database_{nullptr, &sqlite3_close};
};

class LineitemQueries : public NodeTool {
 protected:
  void fill(double scale) {
    const std::uint64_t seed = test::seed_from_environment(3);
    SCOPED_TRACE(test::seed_text(seed));
    lineitem::Generator generator(scale, seed);
    std::string csv;
    lineitem::append_csv_header(csv);
    while (const lineitem::Row* const row = generator.next()) lineitem::append_csv(*row, csv);
    Fields lines = split(csv, '\n');
    lines.pop_back();  // behind the last line's end
    rows_ = lines.size() - 1;
    sqlite_ = std::make_unique<SqliteLineitem>(lines);
    ASSERT_EQ(table({"create", "lineitem", std::string(lineitem::kSchema)}), kOk) << tool.err();
    tool.files.contents["lineitem.csv"] = std::move(csv);
    ASSERT_EQ(table({"load", "lineitem", "lineitem.csv"}), kOk) << tool.err();
  }
  int table(std::vector<std::string> words) {
    words.insert(words.begin(), "table");
    words.insert(words.begin() + 2, {"--at", address});
    return tool.run(words);
  }
  /// The rows of an answer; where it is worked out makes no difference.
  Fields rows(const std::string& query) {
    EXPECT_EQ(table({"query", "--quiet", "--format", "csv", query}), kOk) << tool.err();
    const std::string pushed = tool.out();
    EXPECT_EQ(table({"query", "--quiet", "--format", "csv", "--pull", query}), kOk) << tool.err();
    EXPECT_EQ(tool.out(), pushed);
    Fields lines = split(pushed, '\n');
    lines.pop_back();
    lines.erase(lines.begin());  // the names
    return lines;
  }
  /// The same query to both, whose rows come in any order.
  void expect_equal(const std::string& query, std::size_t rows_min) {
    SCOPED_TRACE(query);
    Fields found = rows(query);
    Fields wanted = sqlite_->rows(query);
    std::ranges::sort(found);
    std::ranges::sort(wanted);
    EXPECT_EQ(found, wanted);
    EXPECT_GE(found.size(), rows_min);
  }

  std::uint64_t rows_ = 0;
  std::unique_ptr<SqliteLineitem> sqlite_;
};

TEST_F(LineitemQueries, TheRevenueOfQ6IsSqlites) {
  fill(0.01);
  const Fields found = rows(
      "select sum(l_extendedprice * l_discount) as revenue, count(*) from lineitem "
      "where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01' "
      "and l_discount between 0.05 and 0.07 and l_quantity < 24");
  ASSERT_EQ(found.size(), 1u);
  const Fields fields = split(found[0], ',');
  EXPECT_EQ(Fields{without_point(fields[0]) + "," + fields[1]},
            sqlite_->rows("select sum(l_extendedprice * l_discount), count(*) from lineitem "
                          "where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01' "
                          "and l_discount between 5 and 7 and l_quantity < 2400"));
  EXPECT_GT(std::stoi(fields[1]), 500);
}

TEST_F(LineitemQueries, TheGroupsOfQ1AreSqlites) {
  fill(0.01);
  Fields found = rows(
      "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
      "sum(l_extendedprice * (1 - l_discount)), "
      "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), count(*), "
      "avg(l_quantity), avg(l_extendedprice), avg(l_discount) "
      "from lineitem where l_shipdate <= date '1998-09-02' group by l_returnflag, l_linestatus");
  const Fields wanted = sqlite_->rows(
      "select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), "
      "sum(l_extendedprice * (100 - l_discount)), "
      "sum(l_extendedprice * (100 - l_discount) * (100 + l_tax)), count(*), sum(l_discount) "
      "from lineitem where l_shipdate <= '1998-09-02' group by 1, 2 order by 1, 2");
  std::ranges::sort(found);
  ASSERT_EQ(found.size(), 4u);
  ASSERT_EQ(wanted.size(), 4u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    SCOPED_TRACE(found[i]);
    const Fields ours = split(found[i], ',');
    const Fields theirs = split(wanted[i], ',');
    for (std::size_t c = 0; c < 7; ++c) {
      EXPECT_EQ(c < 2 || c == 6 ? ours[c] : without_point(ours[c]), theirs[c]) << c;
    }
    // Means are doubles, the nearest but one at most to the exact sum by the count.
    const std::size_t sums[] = {2, 3, 7};
    for (std::size_t m = 0; m < 3; ++m) {
      const long double exact = std::stold(theirs[sums[m]]) / (100 * std::stold(theirs[6]));
      EXPECT_LE(std::fabs(std::stold(ours[7 + m]) - exact), exact * 0x1p-52L) << m;
    }
  }
}

TEST_F(LineitemQueries, LikeAndDistinctAreSqlites) {
  fill(0.005);
  expect_equal(
      "select l_orderkey, l_linenumber, l_comment from lineitem "
      "where l_comment like '%brave%copper%'",
      50);
  expect_equal(
      "select count(*), min(l_comment), max(l_comment) from lineitem "
      "where l_comment like 'calm _a%s' or not l_comment like '%a%'",
      1);
  expect_equal("select distinct l_shipinstruct, l_shipmode from lineitem", 28);
  expect_equal("select distinct l_suppkey from lineitem", 50);
  expect_equal(
      "select l_shipmode, count(*), min(l_shipdate), max(l_receiptdate), max(l_partkey) "
      "from lineitem where l_commitdate < l_receiptdate group by l_shipmode",
      7);
  EXPECT_EQ(sqlite_->rows("select count(*) from lineitem"), Fields{std::to_string(rows_)});
}

}  // namespace
}  // namespace espalier::tools
