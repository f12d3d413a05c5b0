// SPDX-License-Identifier: Apache-2.0
// One value of a row or of an expression, for code that handles one at a time: the reference, the
// client's end, tests. Its type is kept separately.
//
// Rules of all executors: a NaN equals every NaN and is greater than all other reals, -0 equals +0,
// text compares bytewise. Comparisons of numbers are exact, unless one is a real; then the other is
// converted to a real, a decimal by dividing its digits by 10^scale in double.
// Thread: values.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "kinds/table/pipeline.hpp"
#include "kinds/table/wide.hpp"

namespace espalier::table {

struct Value {
  bool null = true;
  Wide number = 0;  ///< all kinds but reals and text; decimals without their point
  double real = 0;
  std::string text;

  static Value of(Wide number) { return {false, number, 0, {}}; }
  static Value of_real(double real) { return {false, 0, real, {}}; }
  static Value of_text(std::string_view text) { return {false, 0, 0, std::string(text)}; }
};

/// Canonical form: the one NaN, and +0 for both zeros, as in keys, minima and computed values.
[[nodiscard]] inline double canonical_real(double real) {
  if (std::isnan(real)) return std::numeric_limits<double>::quiet_NaN();
  return real == 0 ? 0.0 : real;
}

/// The one NaN, independent of the processor; zeros keep their sign.
[[nodiscard]] inline double one_nan(double real) {
  return std::isnan(real) ? std::numeric_limits<double>::quiet_NaN() : real;
}

/// Below, equal to or above 0.
[[nodiscard]] inline int compare_reals(double a, double b) {
  const bool a_nan = std::isnan(a);
  const bool b_nan = std::isnan(b);
  if (a_nan || b_nan) return int{a_nan} - int{b_nan};
  return (a > b) - (a < b);
}

/// A number as a real.
[[nodiscard]] double as_real(const Value& value, const ValueType& type);
/// Compares two values that are not null. Requires: their types are comparable.
[[nodiscard]] int compare_values(const Value& a, const ValueType& a_type, const Value& b,
                                 const ValueType& b_type);

/// Reads a column of a row, whatever its bytes: clamps a text's length, removes a char's trailing
/// blanks.
[[nodiscard]] Value read_value(const Column& column, const std::byte* row);
/// Writes a value and its null bit into a row of zeros: null as zeros, blanks or zeros behind
/// short text. Requires: it fits, and is not null unless the column is nullable.
void write_value(const Column& column, const Value& value, std::byte* row);

/// As people read it: NULL, 12.50, 1995-01-01.
[[nodiscard]] std::string to_text(const Value& value, const ValueType& type);

}  // namespace espalier::table
