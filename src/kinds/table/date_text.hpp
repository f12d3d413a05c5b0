// SPDX-License-Identifier: Apache-2.0
// Dates and timestamps as text, in the proleptic Gregorian calendar [ISO 8601]; the forms are
// kinds/table/value_text.hpp's.
//
// Thread: safe, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::table {

/// Days since 1970-01-01. Nullopt: no date of the years 0001 to 9999.
[[nodiscard]] std::optional<std::int64_t> parse_date(std::string_view text);
/// Microseconds since 1970-01-01 00:00:00 UTC. Nullopt: no timestamp; one just outside the years
/// 1 to 9999, by its offset, is given.
[[nodiscard]] std::optional<std::int64_t> parse_timestamp(std::string_view text);

/// Any number of days; years outside 0001 to 9999 have a sign or more digits.
/// Requires: such as an i32 holds, or microseconds of an i64 make.
void append_date(std::string& out, std::int64_t days);
void append_timestamp(std::string& out, std::int64_t microseconds);

}  // namespace espalier::table
