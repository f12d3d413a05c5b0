// SPDX-License-Identifier: Apache-2.0
// Single values of tables: in rows to append, in constants of queries, and in answers.
//
//   true, 7, 2.5                   bools, integers, doubles
//   9.95_dec, *Decimal::parse(s)   exact numbers
//   "pear", std::string            text
//   Date, Timestamp                those of std::chrono; Date(std::chrono::year(1995) / 1 / 31)
//   std::nullopt                   null
#pragma once

#include <chrono>
#include <compare>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace espalier {

__extension__ using Int128 = __int128;

/// Days since 1970-01-01.
using Date = std::chrono::sys_days;
/// Microseconds since 1970-01-01 00:00:00 UTC.
using Timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// An exact number: unscaled * 10^-scale. Compared by its value: 1.5 equals 1.50.
struct Decimal {
  static constexpr unsigned kDigitsMax = 38;  ///< that parse() takes

  Int128 unscaled = 0;
  std::uint8_t scale = 0;

  /// Parses digits with an optional sign and point: "-12.50". Nullopt: not such a text, or more
  /// than kDigitsMax digits.
  static constexpr std::optional<Decimal> parse(std::string_view text);
  [[nodiscard]] std::string to_text() const;
  /// The nearest double, up to one rounding of the division.
  [[nodiscard]] double to_double() const;
  /// The number, if it is whole and fits 64 bits.
  [[nodiscard]] std::optional<std::int64_t> to_int64() const;

  friend bool operator==(const Decimal& a, const Decimal& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
};

constexpr std::optional<Decimal> Decimal::parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  Decimal number;
  unsigned digits = 0;
  bool point = false;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9' && digits < kDigitsMax) {
      number.unscaled = number.unscaled * 10 + (c - '0');
      ++digits;
      if (point) ++number.scale;
    } else {
      return std::nullopt;
    }
  }
  if (digits == 0) return std::nullopt;
  if (negative) number.unscaled = -number.unscaled;
  return number;
}

namespace literals {
/// 9.95_dec. The compiler rejects an invalid decimal.
consteval Decimal operator""_dec(const char* digits) { return Decimal::parse(digits).value(); }
}  // namespace literals

/// The kind of a value.
enum class ValueKind : std::uint8_t {
  null = 0,
  boolean = 1,
  integer = 2,    ///< std::int64_t
  decimal = 3,    ///< Decimal
  real = 4,       ///< double
  date = 5,       ///< Date
  timestamp = 6,  ///< Timestamp
  text = 7,       ///< std::string_view
};

/// C++ types from which a value can be made. Character types are excluded: they are ambiguous
/// between text and numbers.
template <class T>
concept TextLike = std::convertible_to<const T&, std::string_view>;
template <class T>
concept WholeNumber = std::integral<T> && sizeof(T) <= 8 && !std::same_as<T, bool> &&
                      !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
                      !std::same_as<T, char8_t> && !std::same_as<T, char16_t> &&
                      !std::same_as<T, char32_t>;
template <class T>
concept Scalar = std::same_as<T, bool> || WholeNumber<T> || std::floating_point<T> ||
    std::same_as<T, Decimal> || std::same_as<T, Date> || std::same_as<T, Timestamp> || TextLike<T>;

/// One value, or null. It does not own its text: it is valid as long as what it was made from.
class Value {
 public:
  Value() = default;  ///< null
  Value(std::nullopt_t) {}
  template <Scalar T>
  Value(const T& value) : value_(held(value)) {}
  template <Scalar T>
  Value(const std::optional<T>& value) {
    if (value) value_ = held(*value);
  }

  [[nodiscard]] ValueKind kind() const {
    static_assert(std::variant_size_v<Held> == 8);
    return static_cast<ValueKind>(value_.index());
  }
  [[nodiscard]] bool is_null() const { return kind() == ValueKind::null; }
  /// The value, if it has exactly this type: bool, std::int64_t, Decimal, double, Date, Timestamp
  /// or std::string_view; else nullptr.
  template <class T>
  [[nodiscard]] const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  /// As people read it: NULL, 12.50, 1995-01-31.
  [[nodiscard]] std::string to_text() const;

 private:
  // In the order of ValueKind.
  using Held = std::variant<std::monostate, bool, std::int64_t, Decimal, double, Date, Timestamp,
                            std::string_view>;

  template <class T>
  static Held held(const T& value) {
    if constexpr (WholeNumber<T>) {
      // Beyond 64 signed bits: no integer column holds it, but the value is kept exactly.
      if (!std::in_range<std::int64_t>(value)) return Decimal{static_cast<Int128>(value), 0};
      return static_cast<std::int64_t>(value);
    } else if constexpr (std::floating_point<T>) {
      return static_cast<double>(value);
    } else if constexpr (TextLike<T>) {
      return std::string_view(value);
    } else {
      return value;
    }
  }

  Held value_;
};

}  // namespace espalier
