// SPDX-License-Identifier: Apache-2.0
// Makes rows from elsewhere ones of the table: checks what must hold, and makes the rest canonical.
//
// Refused are lengths of texts above n, decimals of more digits than the type has, and dates and
// timestamps outside the years 1 to 9999. Made canonical, so that equal rows have equal bytes:
// values of nulls, bytes behind texts, padding and null bits of no column become 0, bools 0 or 1.
//
// The row lies in the caller's own memory: what a client can write meanwhile is copied first, each
// word once.
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

/// What is wrong with one value.
enum class RowFault : std::uint8_t {
  none = 0,
  text_length = 1,     ///< a text says that it is longer than it may be
  decimal_digits = 2,  ///< a decimal has more digits than it may have
  date_range = 3,      ///< a date or timestamp lies outside the years 1 to 9999
};

/// A row that was refused, by its number in what was to be appended, from 0.
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
  /// Makes a row canonical. Returns the first fault, if there is one; the row is then in between.
  /// Cost: none for columns of integers and floats that are not null, and without padding.
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
