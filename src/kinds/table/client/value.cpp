// SPDX-License-Identifier: Apache-2.0
#include "espalier/value.hpp"

#include <array>
#include <charconv>
#include <limits>

#include "kinds/table/date_text.hpp"
#include "kinds/table/wide.hpp"

namespace espalier {
namespace {

std::string text_of(double real) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), real).ptr;
  return {digits.data(), end};
}

std::string text_of(Date date) {
  std::string text;
  table::append_date(text, date.time_since_epoch().count());
  return text;
}

std::string text_of(Timestamp timestamp) {
  std::string text;
  table::append_timestamp(text, timestamp.time_since_epoch().count());
  return text;
}

}  // namespace

std::string Decimal::to_text() const { return table::to_text(unscaled, scale); }

double Decimal::to_double() const {
  double power = 1;
  for (unsigned i = 0; i < scale; ++i) power *= 10;
  return static_cast<double>(unscaled) / power;
}

std::optional<std::int64_t> Decimal::to_int64() const {
  Int128 whole = unscaled;
  for (unsigned i = 0; i < scale; ++i) {
    if (whole % 10 != 0) return std::nullopt;
    whole /= 10;
  }
  if (whole < std::numeric_limits<std::int64_t>::min() ||
      whole > std::numeric_limits<std::int64_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(whole);
}

// The one of fewer places gets as many; where that does not fit, it is farther from zero.
std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.scale > b.scale) return 0 <=> (b <=> a);
  Int128 left = a.unscaled;
  for (unsigned scale = a.scale; scale < b.scale; ++scale) {
    if (__builtin_mul_overflow(left, Int128{10}, &left)) {
      return a.unscaled < 0 ? std::strong_ordering::less : std::strong_ordering::greater;
    }
  }
  if (left == b.unscaled) return std::strong_ordering::equal;
  return left < b.unscaled ? std::strong_ordering::less : std::strong_ordering::greater;
}

std::string Value::to_text() const {
  switch (kind()) {
    case ValueKind::null: return "NULL";
    case ValueKind::boolean: return *get_if<bool>() ? "true" : "false";
    case ValueKind::integer: return std::to_string(*get_if<std::int64_t>());
    case ValueKind::decimal: return get_if<Decimal>()->to_text();
    case ValueKind::real: return text_of(*get_if<double>());
    case ValueKind::date: return text_of(*get_if<Date>());
    case ValueKind::timestamp: return text_of(*get_if<Timestamp>());
    case ValueKind::text: break;
  }
  return std::string(*get_if<std::string_view>());
}

}  // namespace espalier
