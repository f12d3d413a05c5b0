// SPDX-License-Identifier: Apache-2.0
#include "sql/literals.hpp"

#include <charconv>

#include "kinds/table/date_text.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/pipeline_builder.hpp"

namespace espalier::sql {
namespace {

using table::Constant;
using wire::ValueKind;

std::unexpected<std::string> wrong(std::string reason) {
  return std::unexpected(std::move(reason));
}

std::expected<Constant, std::string> number(const std::string& text, ValueKind wanted) {
  const bool real = text.find_first_of("eE") != std::string::npos;
  if (real || wanted == ValueKind::real) {
    double value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size()) {
      return wrong("the number is out of range");
    }
    return table::real_constant(value);
  }
  const std::size_t point = text.find('.');
  std::string whole = text;
  unsigned scale = 0;
  if (point != std::string::npos) {
    scale = static_cast<unsigned>(text.size() - point - 1);
    whole.erase(point, 1);
  }
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(whole.data(), whole.data() + whole.size(), value);
  const bool all = error == std::errc{} && stop == whole.data() + whole.size();
  if (point == std::string::npos) {
    if (!all) return wrong("the integer has more than 64 bits");
    return table::integer_constant(value);
  }
  constexpr std::int64_t kLimit = 1'000'000'000'000'000'000;
  if (!all || scale > wire::kDecimalDigitsMax || value <= -kLimit || value >= kLimit) {
    return wrong("the decimal has more than 18 digits");
  }
  return table::decimal_constant(value, scale);
}

std::expected<Constant, std::string> text(const std::string& text, ValueKind wanted) {
  if (wanted == ValueKind::date) {
    const auto days = table::parse_date(text);
    if (!days) return wrong("this is no date, such as 1995-01-31");
    return table::date_constant(static_cast<std::int32_t>(*days));
  }
  if (wanted == ValueKind::timestamp) {
    const auto microseconds = table::parse_timestamp(text);
    if (!microseconds) return wrong("this is no timestamp, such as 1995-01-31 12:00:00");
    return table::timestamp_constant(*microseconds);
  }
  if (text.size() > wire::kConstantTextBytesMax) return wrong("the text has more than 1024 bytes");
  return table::text_constant(text);
}

/// The minus signs before a number, and then the number, as one text.
std::string signed_text(const Expr& expr) {
  if (expr.kind != ExprKind::negate) return expr.text;
  std::string inner = signed_text(expr.children.front());
  return inner.starts_with('-') ? inner.substr(1) : "-" + inner;
}

ExprKind literal_kind(const Expr& expr) {
  return expr.kind == ExprKind::negate ? literal_kind(expr.children.front()) : expr.kind;
}

}  // namespace

bool is_literal(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::integer:
    case ExprKind::decimal:
    case ExprKind::string:
    case ExprKind::date:
    case ExprKind::timestamp:
    case ExprKind::boolean:
    case ExprKind::null: return true;
    case ExprKind::negate: {
      const ExprKind kind = literal_kind(expr);
      return kind == ExprKind::integer || kind == ExprKind::decimal;
    }
    default: return false;
  }
}

std::expected<Constant, std::string> constant_of(const Expr& expr, ValueKind wanted) {
  switch (literal_kind(expr)) {
    case ExprKind::integer:
    case ExprKind::decimal: return number(signed_text(expr), wanted);
    case ExprKind::string: return text(expr.text, wanted);
    case ExprKind::date: return text(expr.text, ValueKind::date);
    case ExprKind::timestamp: return text(expr.text, ValueKind::timestamp);
    case ExprKind::boolean: return table::boolean_constant(expr.text == "true");
    default: return table::null_constant(wanted == ValueKind::invalid ? ValueKind::text : wanted);
  }
}

}  // namespace espalier::sql
