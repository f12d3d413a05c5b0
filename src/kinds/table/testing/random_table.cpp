// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/testing/random_table.hpp"

#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/row_values.hpp"

namespace espalier::table {
namespace {

std::string random_name(base::Random& random, std::size_t number) {
  static constexpr std::string_view kSigns = "abz_A Z09\"',;é";
  std::string name = random.chance(0.8) ? "c" : "";
  for (std::uint64_t i = random.below(5); i != 0; --i) name += kSigns[random.below(kSigns.size())];
  return name + std::to_string(number);
}

std::int64_t random_integer(base::Random& random, const Type& type) {
  const IntegerRange range = range_of(type);
  switch (random.below(4)) {
    case 0: return range.low + static_cast<std::int64_t>(random.below(2));
    case 1: return range.high - static_cast<std::int64_t>(random.below(2));
    case 2: return static_cast<std::int64_t>(random.below(2));
    default: break;
  }
  const auto width = static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(range.low) +
                                   random.between(0, width));
}

double random_floating(base::Random& random, ColumnType type) {
  static constexpr double kOdd[] = {0.0, -0.0, 1.0, -1.5, 0.1, HUGE_VAL, -HUGE_VAL};
  if (random.chance(0.5)) return kOdd[random.below(std::size(kOdd))];
  if (type == ColumnType::f32) {
    const auto bits = static_cast<std::uint32_t>(random());
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return std::isnan(value) ? 0.0 : double{value};
  }
  const std::uint64_t bits = random();
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return std::isnan(value) ? 0.0 : value;
}

std::string random_cell_text(base::Random& random, std::size_t bytes_max) {
  static constexpr std::string_view kSigns = "ab ,;\"\n\r\t'\xC3\xA9\xFF%_";
  std::string text(random.chance(0.2) ? bytes_max : random.between(0, bytes_max), ' ');
  for (char& c : text) c = kSigns[random.below(kSigns.size())];
  return text;
}

}  // namespace

Type random_type(base::Random& random) {
  Type type{static_cast<ColumnType>(random.between(1, 12))};
  if (type.kind == ColumnType::decimal) {
    type.precision = static_cast<std::uint8_t>(random.between(1, wire::kDecimalDigitsMax));
    type.scale = static_cast<std::uint8_t>(random.between(0, type.precision));
  } else if (type.kind == ColumnType::fixed_char || type.kind == ColumnType::text) {
    type.length = static_cast<std::uint16_t>(
        random.between(1, random.chance(0.05) ? wire::kTextBytesMax : 12));
  }
  return type;
}

Schema random_schema(base::Random& random, std::size_t columns_max) {
  std::vector<ColumnSpec> columns(random.between(1, columns_max));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i] = {random_name(random, i), random_type(random), random.chance(0.5)};
  }
  return Schema::make(columns).value();
}

void random_row(base::Random& random, const Schema& schema, std::byte* row) {
  std::memset(row, 0, schema.row_bytes());
  for (const Column& column : schema.columns()) {
    bool stored = false;
    if (column.nullable && random.chance(0.3)) {
      stored = store_null(column, row);
    } else if (is_integral(column.type.kind)) {
      stored = store_integer(column, row, random_integer(random, column.type));
    } else if (is_floating(column.type.kind)) {
      stored = store_floating(column, row, random_floating(random, column.type.kind));
    } else {
      stored = store_text(column, row, random_cell_text(random, column.type.length));
    }
    ESPALIER_ASSERT(stored);
  }
}

std::vector<std::byte> random_rows(base::Random& random, const Schema& schema, std::size_t count) {
  std::vector<std::byte> rows(count * schema.row_bytes());
  for (std::size_t i = 0; i < count; ++i) {
    random_row(random, schema, rows.data() + i * schema.row_bytes());
  }
  return rows;
}

}  // namespace espalier::table
