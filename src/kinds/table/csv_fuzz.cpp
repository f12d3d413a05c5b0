// SPDX-License-Identifier: Apache-2.0
// Any bytes as a CSV file for a schema that the first bytes choose: the reader must end, count each
// line once, and give rows that are canonical; and what the writer makes of them must come back.
#include <cstring>
#include <string>

#include "base/testing/fuzz_input.hpp"
#include "base/testing/memory_source.hpp"
#include "kinds/table/csv_reader.hpp"
#include "kinds/table/csv_writer.hpp"
#include "kinds/table/row_check.hpp"
#include "kinds/table/row_values.hpp"

namespace espalier::table {
namespace {

using base::want;

constexpr const char* kSchemas[] = {
    "a i64 not null, b decimal(12,2), c text(20)",
    "a text(4)",
    "a i8, b i16, c i32, d float, e double, f decimal(18,18)",
    "a date, b timestamp, c bool, d char(3), \"E f\" text(9)",
};

std::vector<std::byte> read_all(const std::string& text, const Schema& schema,
                                const CsvOptions& options, std::size_t piece_bytes,
                                bool& reached_end) {
  base::MemorySource source(text, piece_bytes);
  CsvReader reader(source, schema, options);
  std::vector<std::byte> all;
  std::vector<std::byte> rows(5 * schema.row_bytes());
  reached_end = false;
  while (!reached_end) {
    const auto count = reader.read(rows);
    if (!count) {
      want(!count.error().where.reason.empty(), "a failure without a reason");
      want(count.error().error.code == Code::invalid_argument, "a failure of no kind");
      break;
    }
    const std::size_t bytes = *count * schema.row_bytes();
    all.insert(all.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(bytes));
    reached_end = *count < 5;
  }
  want(reader.skipped() <= options.skip_bad, "more lines skipped than may be");
  want(!reached_end || reader.consumed_bytes() == text.size(), "bytes that were not read");
  want(reader.rows() + reader.skipped() <= text.size() + 1, "more rows than lines");
  return all;
}

/// NaNs come back as one of them; all other bytes as they were.
std::vector<std::byte> with_one_nan(const Schema& schema, std::vector<std::byte> rows) {
  for (std::size_t at = 0; at < rows.size(); at += schema.row_bytes()) {
    for (const Column& column : schema.columns()) {
      if (!is_floating(column.type.kind)) continue;
      const double value = load_floating(column, rows.data() + at);
      if (value == value || is_null(column, rows.data() + at)) continue;
      std::memset(rows.data() + at + column.offset, 0x7F, column.bytes);
    }
  }
  return rows;
}

void run_one(std::string bytes) {
  if (bytes.size() < 3) return;
  const auto choice = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  const Schema schema = Schema::parse(kSchemas[choice(0) % 4]).value();
  CsvOptions options;
  options.separator = (choice(0) & 4) != 0 ? ';' : ',';
  options.header = (choice(0) & 8) != 0;
  if ((choice(0) & 16) != 0) options.null_text = "NULL";
  options.skip_bad = choice(1) < 128 ? choice(1) : ~std::uint64_t{0};
  if ((choice(0) & 32) != 0) options.record_bytes_max = 16;
  const std::size_t piece_bytes = 1 + choice(2);
  bytes.erase(0, 3);

  bool reached_end = false;
  const std::vector<std::byte> rows = read_all(bytes, schema, options, piece_bytes, reached_end);
  bool again = false;
  want(read_all(bytes, schema, options, bytes.size() + 1, again) == rows && again == reached_end,
       "pieces make a difference");

  const RowCheck check(schema);
  std::string text;
  options.record_bytes_max = 1 << 20;
  CsvWriter writer(schema, options);
  writer.append_header(text);
  for (std::size_t at = 0; at < rows.size(); at += schema.row_bytes()) {
    std::vector<std::byte> row(rows.data() + at, rows.data() + at + schema.row_bytes());
    const std::vector<std::byte> before = row;
    want(!check.apply(row.data()) && row == before, "a row that is not canonical");
    writer.append_row(text, row.data());
  }
  const std::vector<std::byte> back = read_all(text, schema, options, piece_bytes, reached_end);
  want(reached_end && with_one_nan(schema, back) == with_one_nan(schema, rows),
       "rows that do not come back");
}

}  // namespace
}  // namespace espalier::table

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::table::run_one(std::string(data, data + size));
  return 0;
}
