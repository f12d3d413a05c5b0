// SPDX-License-Identifier: Apache-2.0
// The text form of a schema (kinds/table/schema.hpp): reading it, and names in it.
#include <algorithm>
#include <array>
#include <utility>

#include "base/number_text.hpp"
#include "kinds/table/lower.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::table {
namespace {

enum class Arguments : std::uint8_t { none, precision_scale, length };

struct TypeName {
  std::string_view name;
  ColumnType kind;
  Arguments arguments = Arguments::none;
};

constexpr std::array kTypeNames = {
    TypeName{"i8", ColumnType::i8},
    TypeName{"i16", ColumnType::i16},
    TypeName{"smallint", ColumnType::i16},
    TypeName{"i32", ColumnType::i32},
    TypeName{"int", ColumnType::i32},
    TypeName{"integer", ColumnType::i32},
    TypeName{"i64", ColumnType::i64},
    TypeName{"bigint", ColumnType::i64},
    TypeName{"float", ColumnType::f32},
    TypeName{"real", ColumnType::f32},
    TypeName{"double", ColumnType::f64},
    TypeName{"date", ColumnType::date},
    TypeName{"timestamp", ColumnType::timestamp},
    TypeName{"bool", ColumnType::boolean},
    TypeName{"boolean", ColumnType::boolean},
    TypeName{"decimal", ColumnType::decimal, Arguments::precision_scale},
    TypeName{"numeric", ColumnType::decimal, Arguments::precision_scale},
    TypeName{"char", ColumnType::fixed_char, Arguments::length},
    TypeName{"text", ColumnType::text, Arguments::length},
    TypeName{"varchar", ColumnType::text, Arguments::length},
};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Reads from the front of a text; remembers where what it read last began.
class SchemaReader {
 public:
  explicit SchemaReader(std::string_view text) : text_(text) {}

  std::expected<ColumnSpec, SchemaError> column();
  [[nodiscard]] bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool take(char c) {
    skip_space();
    start_ = at_;
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] std::unexpected<SchemaError> wrong(std::string reason) const {
    return std::unexpected(SchemaError{start_, std::move(reason)});
  }
  /// Where what comes next begins.
  std::size_t mark() {
    skip_space();
    start_ = at_;
    return start_;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  /// A word in lower case; empty: there is none.
  std::string word();
  std::expected<std::string, SchemaError> name();
  std::expected<std::uint32_t, SchemaError> number(std::uint32_t low, std::uint32_t high,
                                                   std::string_view what);
  std::expected<Type, SchemaError> type();
  std::expected<void, SchemaError> arguments(const TypeName& name, Type& type);

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
};

std::string SchemaReader::word() {
  skip_space();
  start_ = at_;
  std::string word;
  if (at_ < text_.size() && begins_word(text_[at_])) {
    while (at_ < text_.size() && (begins_word(text_[at_]) || is_digit(text_[at_]))) {
      word += lower(text_[at_++]);
    }
  }
  return word;
}

std::expected<std::string, SchemaError> SchemaReader::name() {
  if (!take('"')) {
    std::string plain = word();
    if (plain.empty()) return wrong("expected the name of a column");
    return plain;
  }
  std::string name;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c != '"') {
      name += c;
    } else if (at_ < text_.size() && text_[at_] == '"') {
      name += text_[at_++];
    } else {
      return name;
    }
  }
  return wrong("a quote that does not close");
}

std::expected<std::uint32_t, SchemaError> SchemaReader::number(std::uint32_t low,
                                                               std::uint32_t high,
                                                               std::string_view what) {
  skip_space();
  start_ = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  const auto value = base::parse_digits<std::uint32_t>(text_.substr(start_, at_ - start_));
  if (!value || *value < low || *value > high) {
    return wrong("expected " + std::string(what) + " from " + std::to_string(low) + " to " +
                 std::to_string(high));
  }
  return *value;
}

std::expected<void, SchemaError> SchemaReader::arguments(const TypeName& name, Type& type) {
  if (name.arguments == Arguments::none) return {};
  if (!take('(')) return wrong("expected (, for " + std::string(name.name) + " needs a length");
  if (name.arguments == Arguments::length) {
    const auto length = number(1, wire::kTextBytesMax, "a length in bytes");
    if (!length) return std::unexpected(length.error());
    type.length = static_cast<std::uint16_t>(*length);
  } else {
    const auto precision = number(1, wire::kDecimalDigitsMax, "a number of digits");
    if (!precision) return std::unexpected(precision.error());
    type.precision = static_cast<std::uint8_t>(*precision);
    if (take(',')) {
      const auto scale = number(0, *precision, "digits behind the point");
      if (!scale) return std::unexpected(scale.error());
      type.scale = static_cast<std::uint8_t>(*scale);
    }
  }
  if (!take(')')) return wrong("expected )");
  return {};
}

std::expected<Type, SchemaError> SchemaReader::type() {
  const std::string name = word();
  if (name.empty()) return wrong("expected a type");
  const auto* const found = std::ranges::find(kTypeNames, name, &TypeName::name);
  if (found == kTypeNames.end()) {
    return wrong("no type " + name +
                 "; there are i8, i16, i32, i64, float, double, decimal(p,s), date, timestamp, "
                 "bool, char(n), text(n)");
  }
  Type type{found->kind};
  if (auto read = arguments(*found, type); !read) return std::unexpected(read.error());
  return type;
}

std::expected<ColumnSpec, SchemaError> SchemaReader::column() {
  ColumnSpec spec;
  auto read_name = name();
  if (!read_name) return std::unexpected(read_name.error());
  spec.name = *std::move(read_name);
  auto read_type = type();
  if (!read_type) return std::unexpected(read_type.error());
  spec.type = *read_type;
  std::string next = word();
  if (next == "not") {
    spec.nullable = false;
    next = word();
    if (next != "null") return wrong("expected null behind not");
  } else if (!next.empty() && next != "null") {
    return wrong("expected not null, a comma or the end");
  }
  return spec;
}

}  // namespace

std::expected<Schema, SchemaError> Schema::parse(std::string_view text) {
  SchemaReader reader(text);
  std::vector<ColumnSpec> columns;
  std::vector<std::size_t> starts;
  do {
    if (columns.size() == wire::kColumnsMax) {
      return reader.wrong("more than " + std::to_string(wire::kColumnsMax) + " columns");
    }
    starts.push_back(reader.mark());
    auto column = reader.column();
    if (!column) return std::unexpected(column.error());
    columns.push_back(*std::move(column));
  } while (reader.take(','));
  if (!reader.at_end()) return reader.wrong("expected a comma or the end");
  auto schema = make(columns);
  if (!schema) schema.error().position = starts[schema.error().position];
  return schema;
}

std::string quoted_name(std::string_view name) {
  const auto plain = [](char c) { return (begins_word(c) || is_digit(c)) && lower(c) == c; };
  if (!name.empty() && begins_word(name.front()) && std::ranges::all_of(name, plain)) {
    return std::string(name);
  }
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace espalier::table
