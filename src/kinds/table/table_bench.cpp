// SPDX-License-Identifier: Apache-2.0
// What an append costs, by what must be checked; a scan that touches every row; CSV in.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.hpp"
#include "kinds/table/csv_reader.hpp"
#include "kinds/table/csv_writer.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/snapshot.hpp"
#include "kinds/table/table_object.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::table {
namespace {

constexpr std::uint64_t kRows = 1 << 20;

const char* const kSchemas[] = {
    // Nothing to check, and 64 bytes.
    "a i64 not null, b i64 not null, c i64 not null, d i64 not null, e i64 not null, "
    "f i64 not null, g i64 not null, h i64 not null",
    // Decimals, a date, nulls and texts, and 64 bytes.
    "a i64 not null, b decimal(12,2) not null, c decimal(12,2), d date not null, e char(10), "
    "f text(22), g bool",
};

std::vector<std::byte> rows_of(const Schema& schema, std::uint64_t count) {
  std::vector<std::byte> rows(count * schema.row_bytes());
  for (std::uint64_t i = 0; i < count; ++i) {
    std::byte* const row = rows.data() + i * schema.row_bytes();
    for (const Column& column : schema.columns()) {
      const auto value = static_cast<std::int64_t>(i % 1000);
      if (column.type.kind == ColumnType::boolean) {
        (void)store_integer(column, row, value % 2);
      } else if (is_integral(column.type.kind)) {
        (void)store_integer(column, row, value);
      } else {
        (void)store_text(column, row, std::to_string(value));
      }
    }
  }
  return rows;
}

void append(benchmark::State& state) {
  const Schema schema = Schema::parse(kSchemas[state.range(0)]).value();
  memory::Region region = *memory::Region::reserve({.bytes_max = std::uint64_t{512} << 20});
  memory::BufferPool pool(region);
  catalog::Catalog tables;
  const std::vector<std::byte> rows = rows_of(schema, kRows / 16);
  for (auto _ : state) {
    const auto table = create_table(tables, pool, "t", schema).value();
    for (int i = 0; i < 16; ++i) benchmark::DoNotOptimize(table->append(rows));
    (void)tables.drop("t");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows) *
                          schema.row_bytes());
}
BENCHMARK(append)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void scan(benchmark::State& state) {
  const Schema schema = Schema::parse(kSchemas[0]).value();
  memory::Region region = *memory::Region::reserve({.bytes_max = std::uint64_t{512} << 20});
  memory::BufferPool pool(region);
  catalog::Catalog tables;
  const auto table = create_table(tables, pool, "t", schema).value();
  if (!table->append(rows_of(schema, kRows))) state.SkipWithError("no memory");
  for (auto _ : state) {
    std::int64_t sum = 0;
    const TableSnapshot snapshot(table);
    for (std::uint64_t p = 0; p < snapshot.pages(); ++p) {
      const RowSpan span = *snapshot.page(p);
      for (std::uint32_t i = 0; i < span.count; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, span[i], sizeof value);
        sum += value;
      }
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kRows) *
                          schema.row_bytes());
}
BENCHMARK(scan)->Unit(benchmark::kMillisecond);

/// The bytes of a text.
class TextSource : public base::ByteSource {
 public:
  explicit TextSource(const std::string& text) : text_(text) {}
  Result<std::size_t> read(std::span<char> into) override {
    const std::size_t count = std::min(into.size(), text_.size() - at_);
    std::memcpy(into.data(), text_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  const std::string& text_;
  std::size_t at_ = 0;
};

void read_csv(benchmark::State& state) {
  const Schema schema = Schema::parse(kSchemas[state.range(0)]).value();
  const std::vector<std::byte> rows = rows_of(schema, 20'000);
  std::string text;
  CsvWriter writer(schema, {});
  writer.append_header(text);
  for (std::size_t at = 0; at < rows.size(); at += schema.row_bytes()) {
    writer.append_row(text, rows.data() + at);
  }
  std::vector<std::byte> read(rows.size());
  for (auto _ : state) {
    TextSource source(text);
    CsvReader reader(source, schema, {});
    benchmark::DoNotOptimize(reader.read(read));
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * 20'000));
}
BENCHMARK(read_csv)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::table

BENCHMARK_MAIN();
