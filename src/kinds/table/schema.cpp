// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/schema.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::table {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are read as they lie");

std::uint32_t align(std::uint32_t offset, std::uint32_t alignment) {
  return base::round_up(offset, alignment);
}

/// What is wrong with a name; null: nothing.
const char* wrong_with_name(std::string_view name) {
  if (name.empty()) return "a column without a name";
  if (name.size() > wire::kColumnNameBytesMax) return "a name of more than 63 bytes";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(name, is_control)) return "a name with a control character";
  return nullptr;
}

// Rules that decode() checks, as the detail of `corrupt`.
enum Rule : std::uint32_t { kLength = 1, kFormat = 2, kType = 3, kName = 4, kSchema = 5 };

}  // namespace

bool is_valid(const Type& type) {
  const bool plain = type.precision == 0 && type.scale == 0 && type.length == 0;
  switch (type.kind) {
    case ColumnType::i8:
    case ColumnType::i16:
    case ColumnType::i32:
    case ColumnType::i64:
    case ColumnType::f32:
    case ColumnType::f64:
    case ColumnType::date:
    case ColumnType::timestamp:
    case ColumnType::boolean: return plain;
    case ColumnType::decimal:
      return type.length == 0 && type.precision >= 1 && type.precision <= wire::kDecimalDigitsMax &&
             type.scale <= type.precision;
    case ColumnType::fixed_char:
    case ColumnType::text:
      return type.precision == 0 && type.scale == 0 && type.length >= 1 &&
             type.length <= wire::kTextBytesMax;
    case ColumnType::invalid: break;
  }
  return false;
}

std::uint32_t stored_bytes(const Type& type) {
  switch (type.kind) {
    case ColumnType::i8:
    case ColumnType::boolean: return 1;
    case ColumnType::i16: return 2;
    case ColumnType::i32:
    case ColumnType::f32:
    case ColumnType::date: return 4;
    case ColumnType::i64:
    case ColumnType::f64:
    case ColumnType::decimal:
    case ColumnType::timestamp: return 8;
    case ColumnType::fixed_char: return type.length;
    case ColumnType::text: return 2u + type.length;
    case ColumnType::invalid: break;
  }
  std::unreachable();
}

std::uint32_t alignment(const Type& type) {
  if (type.kind == ColumnType::fixed_char) return 1;
  if (type.kind == ColumnType::text) return 2;
  return stored_bytes(type);
}

std::string to_text(const Type& type) {
  switch (type.kind) {
    case ColumnType::i8: return "i8";
    case ColumnType::i16: return "i16";
    case ColumnType::i32: return "i32";
    case ColumnType::i64: return "i64";
    case ColumnType::f32: return "float";
    case ColumnType::f64: return "double";
    case ColumnType::date: return "date";
    case ColumnType::timestamp: return "timestamp";
    case ColumnType::boolean: return "bool";
    case ColumnType::decimal:
      return "decimal(" + std::to_string(type.precision) + "," + std::to_string(type.scale) + ")";
    case ColumnType::fixed_char: return "char(" + std::to_string(type.length) + ")";
    case ColumnType::text: return "text(" + std::to_string(type.length) + ")";
    case ColumnType::invalid: break;
  }
  return "invalid";
}

std::int64_t power_of_ten(unsigned n) {
  ESPALIER_ASSERT(n <= wire::kDecimalDigitsMax);
  std::int64_t power = 1;
  while (n-- > 0) power *= 10;
  return power;
}

std::expected<Schema, SchemaError> Schema::make(std::span<const ColumnSpec> columns) {
  const auto wrong = [](std::size_t column, std::string reason) {
    return std::unexpected(SchemaError{column, std::move(reason)});
  };
  if (columns.empty()) return wrong(0, "no columns");
  if (columns.size() > wire::kColumnsMax) return wrong(wire::kColumnsMax, "more than 256 columns");
  Schema schema;
  std::set<std::string_view> names;
  std::uint32_t nullables = 0;
  std::uint32_t offset = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnSpec& spec = columns[i];
    if (const char* reason = wrong_with_name(spec.name)) return wrong(i, reason);
    if (!names.insert(spec.name).second) {
      return wrong(i, "two columns named " + quoted_name(spec.name));
    }
    if (!is_valid(spec.type)) return wrong(i, "no such type");
    Column column{spec.name, spec.type, spec.nullable};
    column.offset = align(offset, alignment(spec.type));
    column.bytes = stored_bytes(spec.type);
    offset = column.offset + column.bytes;
    if (spec.nullable) {
      column.null_byte = nullables / 8;  // of the null bits, whose offset is still to come
      column.null_mask = static_cast<std::uint8_t>(1u << nullables % 8);
      ++nullables;
    }
    schema.columns_.push_back(std::move(column));
  }
  schema.null_offset_ = offset;
  schema.null_bytes_ = base::divide_up(nullables, 8u);
  for (Column& column : schema.columns_) {
    if (column.nullable) column.null_byte += offset;
  }
  schema.row_bytes_ = align(offset + schema.null_bytes_, wire::kRowAlignment);
  if (schema.row_bytes_ > wire::kRowBytesMax) {
    return wrong(columns.size() - 1, "rows of " + std::to_string(schema.row_bytes_) +
                                         " bytes; they may have at most 32768");
  }
  return schema;
}

Result<Schema> Schema::decode(std::span<const std::byte> bytes) {
  wire::SchemaHeader header;
  if (bytes.size() < sizeof header) return fail(Code::corrupt, kLength);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.format != wire::kSchemaFormat || header.reserved != 0 || header.columns == 0 ||
      header.columns > wire::kColumnsMax) {
    return fail(Code::corrupt, kFormat);
  }
  if (bytes.size() != sizeof header + header.columns * sizeof(wire::ColumnDescriptor)) {
    return fail(Code::corrupt, kLength);
  }
  std::vector<ColumnSpec> columns;
  columns.reserve(header.columns);
  for (std::size_t i = 0; i < header.columns; ++i) {
    wire::ColumnDescriptor d;
    std::memcpy(&d, bytes.data() + sizeof header + i * sizeof d, sizeof d);
    const Type type{d.type, d.precision, d.scale, d.length};
    if (!is_valid(type) || d.nullable > 1) return fail(Code::corrupt, kType);
    if (d.name_bytes > wire::kColumnNameBytesMax) return fail(Code::corrupt, kName);
    const auto is_zero = [](char c) { return c == 0; };
    if (!std::ranges::all_of(std::span(d.name).subspan(d.name_bytes), is_zero)) {
      return fail(Code::corrupt, kName);
    }
    columns.push_back({std::string(d.name, d.name_bytes), type, d.nullable != 0});
  }
  auto schema = make(columns);
  if (!schema) return fail(Code::corrupt, kSchema);
  return *std::move(schema);
}

std::size_t Schema::encoded_bytes() const {
  return sizeof(wire::SchemaHeader) + columns_.size() * sizeof(wire::ColumnDescriptor);
}

void Schema::encode(std::span<std::byte> out) const {
  ESPALIER_ASSERT(out.size() == encoded_bytes());
  const wire::SchemaHeader header{wire::kSchemaFormat, static_cast<std::uint16_t>(columns_.size()),
                                  0};
  std::memcpy(out.data(), &header, sizeof header);
  std::byte* at = out.data() + sizeof header;
  for (const Column& column : columns_) {
    wire::ColumnDescriptor d{};
    d.type = column.type.kind;
    d.nullable = column.nullable ? 1 : 0;
    d.precision = column.type.precision;
    d.scale = column.type.scale;
    d.length = column.type.length;
    d.name_bytes = static_cast<std::uint16_t>(column.name.size());
    std::memcpy(d.name, column.name.data(), column.name.size());
    std::memcpy(at, &d, sizeof d);
    at += sizeof d;
  }
}

std::string Schema::to_text() const {
  std::string text;
  for (const Column& column : columns_) {
    if (!text.empty()) text += ", ";
    text += quoted_name(column.name) + " " + table::to_text(column.type);
    if (!column.nullable) text += " not null";
  }
  return text;
}

std::optional<std::size_t> Schema::find(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &Column::name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

}  // namespace espalier::table
