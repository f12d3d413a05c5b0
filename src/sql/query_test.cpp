// SPDX-License-Identifier: Apache-2.0
// Queries from text to answers, over rows in memory.
#include "sql/query.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "kinds/table/reference.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::sql {
namespace {

using table::MemoryRows;
using table::Schema;
using table::Value;

/// A small table with every type, and nulls.
MemoryRows people() {
  MemoryRows rows(*Schema::parse(
      "id i32 not null, city text(20), paid decimal(12,2), score double, born date, seen timestamp,"
      " active bool, code char(4)"));
  const auto row = [&](int id, const char* city, Value paid, Value score, Value born, Value active,
                       const char* code) {
    rows.append({Value::of(id), city ? Value::of_text(city) : Value{}, paid, score, born,
                 Value::of(1'000'000), active, Value::of_text(code)});
  };
  row(1, "Bonn", Value::of(1250), Value::of_real(0.5), Value::of(0), Value::of(1), "a");
  row(2, "Bern", Value::of(-300), Value::of_real(2), Value::of(365), Value::of(0), "ab");
  row(3, nullptr, Value{}, Value{}, Value{}, Value{}, "a");
  row(4, "Bonn", Value::of(1), Value::of_real(-1), Value::of(9000), Value::of(1), "abc");
  row(5, "Z\xC3\xBCrich", Value::of(99), Value::of_real(8), Value::of(1), Value{}, "");
  return rows;
}

/// The answer as lines of values behind commas, or the error.
std::string answer(std::string_view text) {
  const MemoryRows rows = people();
  const auto statement = parse(text);
  if (!statement) return statement.error().message();
  const auto query = translate(*statement, rows.schema());
  if (!query) return query.error().message();
  table::MemorySource source(rows);
  const auto result = run_reference(query->pipeline, source);
  if (!result) return result.error().message();
  std::string lines;
  Answer whole(*query, 1);
  const auto out = [&](Answer::Row row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      lines += (i == 0 ? "" : ",") + to_text(row[i], query->columns[i].type());
    }
    lines += "\n";
  };
  if (auto done = whole.take(result->rows, out); !done) return done.error();
  if (auto done = whole.finish(out); !done) return done.error();
  return lines;
}

std::string names(std::string_view text) {
  const auto statement = parse(text);
  const auto query = translate(*statement, people().schema());
  std::string all;
  for (const OutputColumn& column : query->columns) all += column.name + ";";
  return all;
}

TEST(SqlQuery, ProjectsAndFilters) {
  EXPECT_EQ(answer("select id, city from t where paid > 0 and id < 5"), "1,Bonn\n4,Bonn\n");
  EXPECT_EQ(answer("select * from t where id = 2"),
            "2,Bern,-3.00,2,1971-01-01,1970-01-01 00:00:01,false,ab\n");
  EXPECT_EQ(answer("select t.id from t where city is null"), "3\n");
  EXPECT_EQ(answer("select x.id from t as x limit 2"), "1\n2\n");
  EXPECT_EQ(answer("select id*2+1, -paid, score/2 from t"),
            "at 28, '/': only aggregates may be divided");
  EXPECT_EQ(answer("select id*2+1, -paid, paid*paid from t where id = 1"), "3,-12.50,156.2500\n");
  EXPECT_EQ(answer("select id > 2 as late from t limit 3"), "false\nfalse\ntrue\n");
}

TEST(SqlQuery, ConditionsHaveThreeValues) {
  EXPECT_EQ(answer("select id from t where not (city = 'Bonn')"), "2\n5\n");
  EXPECT_EQ(answer("select id from t where city <> 'Bonn' or id = 3"), "2\n3\n5\n");
  EXPECT_EQ(answer("select id from t where paid in (12.5, null)"), "1\n");
  EXPECT_EQ(answer("select id from t where paid not in (12.5, null)"), "");
  EXPECT_EQ(answer("select id from t where active"), "1\n4\n");
  EXPECT_EQ(answer("select id from t where not active"), "2\n");
  EXPECT_EQ(answer("select id from t where city = null"), "");
  EXPECT_EQ(answer("select id from t where id between 2 and 3 or paid between -5 and 0.01"),
            "2\n3\n4\n");
  EXPECT_EQ(answer("select id from t where id not between 2 and 4"), "1\n5\n");
  EXPECT_EQ(answer("select id from t where id in (1, paid, 2 + 3)"), "1\n5\n");
}

TEST(SqlQuery, TextsDatesAndTimestamps) {
  EXPECT_EQ(answer("select id from t where city like 'B_n%'"), "1\n4\n");
  EXPECT_EQ(answer("select id from t where city like 'Z_rich'"), "5\n");
  EXPECT_EQ(answer("select id from t where city not like 'B%'"), "5\n");
  EXPECT_EQ(answer("select id from t where code = 'ab'"), "2\n");
  EXPECT_EQ(answer("select id from t where code = ''"), "5\n");
  // Blanks behind char(n) are nothing, and so are those of a constant beside it; of text they are.
  EXPECT_EQ(answer("select id from t where code = 'ab   ' or '   ' = code"), "2\n5\n");
  EXPECT_EQ(answer("select id from t where code in ('abc ', 'a  ', ' a')"), "1\n3\n4\n");
  EXPECT_EQ(answer("select id from t where code between 'ab  ' and 'abc '"), "2\n4\n");
  EXPECT_EQ(answer("select id from t where code >= 'ab ' and code <> 'ab  '"), "4\n");
  EXPECT_EQ(answer("select id, 'ab ' from t where city = 'Bonn '"), "");
  EXPECT_EQ(answer("select 'ab ', code = 'ab ' from t where id = 2"), "ab ,true\n");
  EXPECT_EQ(answer("select id from t where code like 'ab '"), "");
  EXPECT_EQ(answer("select id from t where born < '1971-01-01'"), "1\n5\n");
  EXPECT_EQ(answer("select id from t where born >= date '1971-01-01'"), "2\n4\n");
  EXPECT_EQ(answer("select count(*) from t where seen = '1970-01-01 00:00:01'"), "5\n");
  EXPECT_EQ(answer("select count(*) from t where seen > timestamp '1970-01-01T00:00:00.999999'"),
            "5\n");
}

TEST(SqlQuery, RegularExpressions) {
  EXPECT_EQ(answer("select id from t where city ~ 'on+$'"), "1\n4\n");
  EXPECT_EQ(answer("select id from t where city ~ '^Z.rich$'"), "5\n");
  EXPECT_EQ(answer("select id from t where city !~ '^B'"), "5\n") << "null is neither";
  EXPECT_EQ(answer("select id from t where city ~* '^b[EO]'"), "1\n2\n4\n");
  EXPECT_EQ(answer("select id from t where city !~* 'R'"), "1\n4\n");
  EXPECT_EQ(answer("select id from t where code ~ '^.$'"), "1\n3\n") << "without blanks";
  EXPECT_EQ(answer("select id from t where code ~ '' and id < 3"), "1\n2\n");
  EXPECT_EQ(answer("select city ~ null, city ~ 'Z' from t where id >= 4"),
            "NULL,false\nNULL,true\n");
}

TEST(SqlQuery, NumbersCompareExactly) {
  EXPECT_EQ(answer("select id from t where paid = 0.010"), "4\n");
  EXPECT_EQ(answer("select id from t where score > -1 and score < 2"), "1\n");
  EXPECT_EQ(answer("select id from t where score = -1"), "4\n");
  EXPECT_EQ(answer("select id from t where -id = -  5"), "5\n");
  EXPECT_EQ(answer("select id from t where id > -1 and id < 2.5"), "1\n2\n");
}

TEST(SqlQuery, GroupsAndAggregates) {
  EXPECT_EQ(answer("select city, count(*), sum(paid) from t group by city"),
            "Bonn,2,12.51\nBern,1,-3.00\nNULL,1,NULL\nZ\xC3\xBCrich,1,0.99\n");
  EXPECT_EQ(
      answer("select count(*), count(paid), min(paid), max(city), avg(id), sum(score) from t"),
      "5,4,-3.00,Z\xC3\xBCrich,3,9.5\n");
  EXPECT_EQ(answer("select count(*), sum(id), min(city), avg(score) from t where id > 9"),
            "0,NULL,NULL,NULL\n");
  EXPECT_EQ(answer("select sum(id) from t where id > 9 group by city"), "");
  EXPECT_EQ(answer("select city from t group by city limit 1"), "Bonn\n");
  EXPECT_EQ(answer("select sum(paid * id) from t"), "11.49\n");
}

TEST(SqlQuery, ArithmeticOverAggregatesIsDoneHere) {
  EXPECT_EQ(answer("select sum(id) * 2 - count(*) from t"), "25\n");
  EXPECT_EQ(answer("select sum(id) / count(*), -max(paid), sum(paid) * 0.5 from t"),
            "3,-12.50,5.250\n");
  EXPECT_EQ(answer("select sum(id) / count(score) from t where id = 3"), "division by zero");
  EXPECT_EQ(answer("select distinct count(*) from t group by city"), "2\n1\n");
  EXPECT_EQ(answer("select distinct count(*) from t group by city limit 1"), "2\n");
  EXPECT_EQ(answer("select id + count(*) from t group by id limit 2"), "2\n3\n");
}

TEST(SqlQuery, Distinct) {
  EXPECT_EQ(answer("select distinct city from t"), "Bonn\nBern\nNULL\nZ\xC3\xBCrich\n");
  EXPECT_EQ(answer("select distinct active, code from t limit 2"), "true,a\nfalse,ab\n");
}

TEST(SqlQuery, NamesColumnsAsPostgresDoes) {
  EXPECT_EQ(names("select id, sum(paid), count(*), id + 1, max(id) as last from t group by id"),
            "id;sum;count;?column?;last;");
  EXPECT_EQ(names("select *, id from t"), "id;city;paid;score;born;seen;active;code;id;");
}

TEST(SqlQuery, OverflowNamesExpressionAndRow) {
  EXPECT_EQ(answer("select id * 9223372036854775807 from t"),
            "operator 1: id * 9223372036854775807 overflows in row 1");
  EXPECT_EQ(answer("select paid * 999999999999999.99 from t"),
            "operator 1: paid * 999999999999999.99 overflows in row 0");
}

struct Refused {
  std::string_view text;
  std::string_view message;
};

TEST(SqlQuery, LimitsAreNamed) {
  std::string nodes = "select id from t where id = 0";
  for (int i = 1; i < 90; ++i) nodes += " or id = " + std::to_string(i);
  EXPECT_EQ(answer(nodes), "at 1, 'select': there are more than 256 expression nodes");
  std::string constants = "select id from t where id in (0";
  for (int i = 1; i < 2049; ++i) constants += "," + std::to_string(i);
  EXPECT_EQ(answer(constants + ")"), "at 1, 'select': there are more than 2048 constants");
  std::string sums = "select id";
  for (int i = 0; i < 33; ++i) sums += " + 1";
  EXPECT_EQ(answer(sums + " from t"), "at 1, 'select': an expression is more than 32 deep");
  EXPECT_EQ(answer("select '" + std::string(64 * 1024, 'x') + "' from t"),
            "at 1, 'select': the query has more than 64 KiB");
}

TEST(SqlQuery, RefusesWhatIsOutsideWithPositionAndWord) {
  for (const Refused& refused : std::initializer_list<Refused>{
           {"selec id from t", "at 1, 'selec': syntax error at or near \"selec\""},
           {"", "at 1: there is no query"},
           {"select id from", "at 15: syntax error at end of input"},
           {"select 'Z\xC3\xBC\xFFrich' from t",
            "at 12: the byte 0xFF begins no character of UTF-8"},
           {"select id from t where city = '\xE4'",
            "at 32: the byte 0xE4 begins no character of UTF-8"},
           {"delete from t", "at 1, 'delete': only select is supported"},
           {"select id from t; select 1", "at 19, 'select': there may be one query"},
           {"select id from t order by id", "at 27, 'id': order by is not supported"},
           {"select id from t limit 1 offset 2", "at 33, '2': offset is not supported"},
           {"select city from t group by city having count(*) > 1",
            "at 41, 'count': having is not supported"},
           {"select id from t, u", "at 19, 'u': there may be one table"},
           {"select id from t join u on true", "at 16, 't': joins are not supported"},
           {"select 1", "at 8, '1': from is missing"},
           {"select id from a.t", "at 16, 'a.t': a table has one name"},
           {"select nope from t", "at 8, 'nope': the table has no column nope"},
           {"select u.id from t", "at 8, 'u.id': there is only the table t"},
           {"select id from t where id", "at 24, 'id': where takes a condition, not integer"},
           {"select id from t where id = 'x'", "at 27, '=': integer is compared with text"},
           {"select id from t where city + 1 = 2", "at 29, '+': '+' takes numbers, not text"},
           {"select id from t where born > '1971-02-30'",
            "at 31, ''1971-02-30'': this is no date, such as 1995-01-31"},
           {"select id from t where city ~ 'x('",
            "at 31, ''x('': the regular expression is wrong at 1, 'x(': missing ): x("},
           {"select id from t where city !~* 'a**'",
            "at 33, ''a**'': the regular expression is wrong at 2, '**': bad repetition operator: "
            "**"},
           {"select id from t where id ~ 'x'", "at 27, '~': '~' takes text, not integer"},
           {"select id from t where city ~ city", "at 31, 'city': the pattern of ~ must be a text"},
           {"select id from t where city similar to 'x'",
            "at 29, 'similar': this form of a condition is not supported"},
           {"select id from t where ~ id = 1", "at 24, '~': this operator is not supported"},
           {"select id from t where city ilike 'x'",
            "at 29, 'ilike': this form of a condition is not supported"},
           {"select id from t where city like 'x\\'",
            "at 29, 'like': the pattern ends with a backslash"},
           {"select id from t where id = (select 1)",
            "at 29, '(': queries inside queries are not supported"},
           {"select id from t where count(*) > 1",
            "at 24, 'count': aggregates cannot stand behind where"},
           {"select upper(city) from t", "at 8, 'upper': the function upper is not supported"},
           {"select count(distinct id) from t",
            "at 8, 'count': distinct inside an aggregate is not supported"},
           {"select sum(city) from t", "at 8, 'sum': sum takes numbers, not text"},
           {"select sum(sum(id)) from t", "at 8, 'sum': aggregates of aggregates do not exist"},
           {"select id, count(*) from t",
            "at 8, 'id': the column id stands neither behind group by nor in an aggregate"},
           {"select *, count(*) from t", "at 8, '*': * cannot stand beside groups"},
           {"select id from t group by id + 1", "at 30, '+': group by takes columns"},
           {"select id::text from t", "at 12, 'text': conversions to text are not supported"},
           {"select id from t limit 1.5", "at 24, '1.5': limit takes a number of rows"},
           {"select id from t where id = 99999999999999999999",
            "at 29, '99999999999999999999': the integer has more than 64 bits"},
           {"select case when true then 1 end from t", "at 8, 'case': case is not supported"},
           {"select distinct on (id) id from t", "at 21, 'id': distinct on is not supported"},
       }) {
    EXPECT_EQ(answer(refused.text), refused.message) << refused.text;
  }
}

}  // namespace
}  // namespace espalier::sql
