// SPDX-License-Identifier: Apache-2.0
// Text form of values, in CSV files and queries: formatting and parsing.
//
//   integers, decimal   -12, 12.50, .5: digits, a sign, a point; a decimal takes no digit more
//                       behind the point than it has
//   float, double       what std::from_chars reads: 1.5, 1e9, inf, nan; written as the shortest
//                       text that is read back as the same value
//   date                2024-02-29, years 0001 to 9999
//   timestamp           2024-02-29 12:00:01.25 with a T or a blank between; without seconds, or the
//                       time, these are 0; an offset Z, +01 or +01:30 is taken off, without one it
//                       is UTC. Written in UTC, without an offset
//   bool                true, t, yes, y, on, 1, or false, f, no, n, off, 0; written true or false
//   char, text          the bytes
//
// Blanks around all but char and text are ignored. Words and letters may be upper case.
//
// Invariant: parse_value(append_value(v)) stores v, for every value of a canonical row; any NaN is
// written nan. Thread: safe, no state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/table/schema.hpp"

namespace espalier::table {

/// Stores the parsed text into the row. Returns what is wrong with it, for people; the row is then
/// unchanged.
[[nodiscard]] std::optional<std::string> parse_value(const Column& column, std::string_view text,
                                                     std::byte* row);

/// Appends a value; ignores the null bit. Safe for any bytes.
void append_value(std::string& out, const Column& column, const std::byte* row);

}  // namespace espalier::table
