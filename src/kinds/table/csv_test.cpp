// SPDX-License-Identifier: Apache-2.0
// CSV in and out: kinds/table/csv_reader.hpp and kinds/table/csv_writer.hpp.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/testing/memory_source.hpp"
#include "kinds/table/csv_reader.hpp"
#include "kinds/table/csv_writer.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::table {
namespace {

constexpr const char* kSchema = "id i64 not null, price decimal(6,2), name text(8)";

std::string written(const Schema& schema, std::span<const std::byte> rows, CsvOptions options) {
  CsvWriter writer(schema, std::move(options));
  std::string out;
  writer.append_header(out);
  for (std::size_t at = 0; at < rows.size(); at += schema.row_bytes()) {
    writer.append_row(out, rows.data() + at);
  }
  return out;
}

struct Loaded {
  std::vector<std::byte> rows;
  std::string failure;  // empty: it went to the end
  std::uint64_t skipped = 0;
  std::vector<std::string> first_skipped;
};

Loaded load(const Schema& schema, std::string text, const CsvOptions& options = {},
            std::size_t piece_bytes = 7, std::size_t rows_at_once = 3) {
  base::MemorySource source(std::move(text), piece_bytes);
  CsvReader reader(source, schema, options);
  Loaded loaded;
  std::vector<std::byte> rows(rows_at_once * schema.row_bytes());
  for (;;) {
    const auto count = reader.read(rows);
    if (!count) {
      EXPECT_FALSE(reader.read(rows)) << "a failure lasts";
      loaded.failure = describe(count.error().where);
      break;
    }
    loaded.rows.insert(loaded.rows.end(), rows.begin(),
                       rows.begin() + static_cast<std::ptrdiff_t>(*count * schema.row_bytes()));
    if (*count < rows_at_once) break;
  }
  loaded.skipped = reader.skipped();
  for (const CsvError& error : reader.first_skipped()) {
    loaded.first_skipped.push_back(describe(error));
  }
  return loaded;
}

/// Reads the text and writes it again.
std::string loaded_and_written(const std::string& text, CsvOptions options = {}) {
  const Schema schema = schema_of(kSchema);
  const Loaded loaded = load(schema, text, options);
  return loaded.failure.empty() ? written(schema, loaded.rows, options) : "! " + loaded.failure;
}

TEST(Csv, ReadsAndWritesWhatRfc4180Says) {
  EXPECT_EQ(loaded_and_written("id,price,name\r\n1,2.50,ab\r\n2,,\"\"\r\n3,0.1,\"a\"\"b,\n\"\r\n"),
            "id,price,name\n1,2.50,ab\n2,,\"\"\n3,0.10,\"a\"\"b,\n\"\n");
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,x"), "id,price,name\n1,2.00,x\n");
  EXPECT_EQ(loaded_and_written("id,price,name\n\n1,2,x\n\n"), "id,price,name\n1,2.00,x\n");
  EXPECT_EQ(loaded_and_written("id,price,name\n"), "id,price,name\n");
}

TEST(Csv, TheHeaderNamesColumnsInAnyOrder) {
  EXPECT_EQ(loaded_and_written("NAME,id\nx,1\n"), "id,price,name\n1,,x\n");
  EXPECT_EQ(loaded_and_written("\xEF\xBB\xBFid,name\n1,x\n"), "id,price,name\n1,,x\n");
  EXPECT_EQ(loaded_and_written("id,qty\n1,2\n"),
            "! line 1: the header names qty, which is no column of the table");
  EXPECT_EQ(loaded_and_written("id,name,ID\n1,2,3\n"),
            "! line 1, column \"ID\": the header names this column twice");
  EXPECT_EQ(loaded_and_written("name\nx\n"),
            "! line 1, column id: the header leaves it out, and it is not null");
  EXPECT_EQ(loaded_and_written(""), "! line 1: the file has no header line");
  EXPECT_EQ(loaded_and_written("\"id\nx\n", {.skip_bad = 9}),
            "! line 1: a quote opens here and never closes");
}

TEST(Csv, OptionsSayHowTheFileLooks) {
  EXPECT_EQ(loaded_and_written("1;2;\"x;y\"\n2;NULL;\"NULL\"\n3;;\n",
                               {.separator = ';', .header = false, .null_text = "NULL"}),
            "! line 3, column price: \"\" is no decimal(6,2)");
  EXPECT_EQ(loaded_and_written("1;2;\"x;y\"\n2;NULL;\"NULL\"\n3;3;\n",
                               {.separator = ';', .header = false, .null_text = "NULL"}),
            "1;2.00;\"x;y\"\n2;NULL;\"NULL\"\n3;3.00;\n");
  EXPECT_EQ(wrong_with({}), "");
  EXPECT_NE(wrong_with({.separator = '"'}), "");
  EXPECT_NE(wrong_with({.separator = '\n'}), "");
  EXPECT_NE(wrong_with({.separator = '|', .null_text = "a|b"}), "");
  EXPECT_NE(wrong_with({.null_text = "\"\""}), "");
}

TEST(Csv, ErrorsNameLineAndColumn) {
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,x\n\"2\",\"1.234\",y\n"),
            "! line 3, column price: \"1.234\" has more than 2 digits behind the point, for "
            "decimal(6,2)");
  EXPECT_EQ(loaded_and_written("id,price,name\n,2,x\n"),
            "! line 2, column id: null, and it is not null");
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,\"a\n\n\"\n2,1\n"),
            "! line 5: 2 fields where there should be 3");
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,x,y\n"),
            "! line 2: 4 fields where there should be 3; a field with a separator in it needs "
            "quotes");
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,123456789\n"),
            "! line 2, column name: 9 bytes are more than text(8) holds");
  EXPECT_EQ(loaded_and_written("id,price,name\n1,2,\"x\"y\n"),
            "! line 2: text stands behind a closing quote; inside quotes, write \"\" for a quote");
}

TEST(Csv, SkipsAsManyBadLinesAsItMay) {
  const Schema schema = schema_of(kSchema);
  const std::string text = "id,price,name\n1,1,a\nx,1,b\n2,1,c\n3,1\n4,1,d\n";
  const Loaded two = load(schema, text, {.skip_bad = 2});
  EXPECT_EQ(two.failure, "");
  EXPECT_EQ(two.skipped, 2u);
  EXPECT_EQ(two.first_skipped,
            (std::vector<std::string>{"line 3, column id: \"x\" is no i64",
                                      "line 5: 2 fields where there should be 3"}));
  EXPECT_EQ(written(schema, two.rows, {}), "id,price,name\n1,1.00,a\n2,1.00,c\n4,1.00,d\n");
  const Loaded one = load(schema, text, {.skip_bad = 1});
  EXPECT_EQ(one.failure, "line 5: 2 fields where there should be 3");
  EXPECT_EQ(one.skipped, 1u);
  EXPECT_EQ(load(schema, text, {.skip_bad = ~std::uint64_t{0}}).skipped, 2u);
}

TEST(Csv, ARefusedLineLeavesNothingInTheNextRow) {
  const Schema schema = schema_of("a i8, b text(4), c i8");
  const Loaded loaded = load(schema, "a,b,c\n7,full,x\n,,1\n", {.skip_bad = 1});
  EXPECT_EQ(written(schema, loaded.rows, {}), "a,b,c\n,,1\n");
  EXPECT_EQ(loaded.rows, load(schema, "a,b,c\n,,1\n").rows);
}

TEST(Csv, AFileOfOneColumnMayHaveBlankLines) {
  const Schema schema = schema_of("a text(4)");
  const Loaded loaded = load(schema, "a\nx\n\n\"\"\n");
  EXPECT_EQ(loaded.rows.size(), 3 * schema.row_bytes());
  EXPECT_EQ(written(schema, loaded.rows, {}), "a\nx\n\n\"\"\n");
}

TEST(Csv, AnErrorOfTheSourceIsPassedOn) {
  const Schema schema = schema_of(kSchema);
  base::MemorySource source("id,price,name\n1,1,a\n2,1,b\n", 4);
  source.fail_after(20, EIO);
  CsvReader reader(source, schema, {});
  std::vector<std::byte> rows(std::size_t{9} * schema.row_bytes());
  const auto failed = reader.read(rows);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().error, (Error{Code::system, 0, EIO}));
  EXPECT_FALSE(reader.read(rows));
}

TEST(Csv, RandomTablesComeBackExactly) {
  base::Random random(base::seed_from_environment(7));
  for (int i = 0; i < 1000; ++i) {
    const Schema schema = random_schema(random, random.chance(0.2) ? 1 : 6);
    CsvOptions options;
    options.separator = ",;\t|0-."[random.below(7)];
    options.header = random.chance(0.5);
    static constexpr const char* kNulls[] = {"", "NULL", "a", "nan", "true", " "};
    options.null_text = kNulls[random.below(std::size(kNulls))];
    ASSERT_EQ(wrong_with(options), "");
    const std::vector<std::byte> rows = random_rows(random, schema, random.below(20));
    const std::string text = written(schema, rows, options);
    const Loaded loaded =
        load(schema, text, options, random.between(1, 100), random.between(1, 30));
    ASSERT_EQ(loaded.failure, "") << schema.to_text() << "\n" << text;
    ASSERT_EQ(loaded.rows, rows) << schema.to_text() << "\n" << text;
    ASSERT_EQ(written(schema, loaded.rows, options), text);
  }
}

}  // namespace
}  // namespace espalier::table
