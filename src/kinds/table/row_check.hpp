// SPDX-License-Identifier: Apache-2.0
// Validates rows from outside, and makes them canonical.
//
// Refused: texts longer than n, decimals with too many digits, dates and timestamps outside the
// years 1 to 9999. Made canonical, so that equal rows have equal bytes: values of nulls, bytes
// after texts, padding and unused null bits become 0, bools 0 or 1.
//
// The row must be in private memory: copy memory that a client can write first, each word once.
//
// Thread: const calls from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kinds/table/schema.hpp"

namespace espalier::table {

/// A violation in one value.
enum class RowFault : std::uint8_t {
  none = 0,
  text_length = 1,     ///< a text's length exceeds the column's
  decimal_digits = 2,  ///< a decimal has too many digits
  date_range = 3,      ///< a date or timestamp lies outside the years 1 to 9999
};

/// A refused row, by its number in the append, from 0.
struct WrongRow {
  std::uint64_t row = 0;
  std::uint32_t column = 0;
  RowFault fault = RowFault::none;

  friend bool operator==(const WrongRow&, const WrongRow&) = default;
};

/// One sentence for people, e.g. "row 7, column price: more than 12 digits".
[[nodiscard]] std::string describe(const WrongRow& wrong, const Schema& schema);

class RowCheck {
 public:
  explicit RowCheck(const Schema& schema);

  struct Found {
    std::uint32_t column = 0;
    RowFault fault = RowFault::none;
  };
  /// Makes a row canonical. Returns the first fault, if any; the row is then partially converted.
  /// Cost: none for integers and floats that are not null, and without padding.
  std::optional<Found> apply(std::byte* row) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { clear, mask, null, boolean, range32, range64, text };
    Kind kind;
    std::uint8_t null_mask = 0;
    std::uint16_t length = 0;  // text: n; clear, null: bytes
    std::uint32_t offset = 0;
    std::uint32_t null_byte = 0;
    std::uint32_t column = 0;
    RowFault fault = RowFault::none;
    std::int64_t low = 0;
    std::int64_t high = 0;
  };
  void add_padding(std::uint32_t offset, std::uint32_t end);
  void add_column(const Column& column, std::uint32_t number);
  static bool step(const Step& step, std::byte* row);

  std::vector<Step> steps_;
};

}  // namespace espalier::table
