// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/date_text.hpp"

#include <cstddef>

#include "kinds/table/format/table.hpp"

namespace espalier::table {
namespace {

constexpr std::int64_t kMicroseconds = 1'000'000;

struct Civil {
  std::int64_t year;
  unsigned month;  // 1 to 12
  unsigned day;    // 1 to 31
};

// Both as in [Hinnant, chrono-Compatible Low-Level Date Algorithms]: years begin in March, and 400
// of them have 146097 days.
constexpr std::int64_t days_of(const Civil& date) {
  const std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year =
      (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
  const std::int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146'097 + day_of_era - 719'468;
}

constexpr Civil civil_of(std::int64_t days) {
  days += 719'468;
  const std::int64_t era = (days >= 0 ? days : days - 146'096) / 146'097;
  const std::int64_t day_of_era = days - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  const auto day = static_cast<unsigned>(day_of_year - (153 * shifted + 2) / 5 + 1);
  const auto month = static_cast<unsigned>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month, day};
}
static_assert(days_of({1970, 1, 1}) == 0 && days_of({1, 1, 1}) == wire::kDateMin);
static_assert(days_of({9999, 12, 31}) == wire::kDateMax);
static_assert(civil_of(wire::kDateMin).year == 1 && civil_of(wire::kDateMax).day == 31);

/// Takes text apart from its front.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Exactly so many digits.
  bool digits(std::size_t count, std::int64_t& value) {
    if (rest_.size() < count) return false;
    value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!next_is_digit()) return false;
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return true;
  }
  /// One to six digits behind a point, as millionths.
  bool fraction(std::int64_t& value) {
    value = 0;
    std::int64_t unit = kMicroseconds;
    while (next_is_digit()) {
      if (unit == 1) return false;
      unit /= 10;
      value += unit * (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return unit != kMicroseconds;
  }

 private:
  [[nodiscard]] bool next_is_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  std::string_view rest_;
};

std::optional<std::int64_t> take_date(Reader& reader) {
  std::int64_t year = 0;
  std::int64_t month = 0;
  std::int64_t day = 0;
  if (!reader.digits(4, year) || !reader.take('-') || !reader.digits(2, month) ||
      !reader.take('-') || !reader.digits(2, day) || year < 1 || month < 1 || month > 12 ||
      day < 1) {
    return std::nullopt;
  }
  const std::int64_t days =
      days_of({year, static_cast<unsigned>(month), static_cast<unsigned>(day)});
  // A day that the month does not have comes out as one of the next month.
  if (day > 31 || civil_of(days).day != static_cast<unsigned>(day)) return std::nullopt;
  return days;
}

/// Hours and minutes, and seconds if there are some.
std::optional<std::int64_t> take_time(Reader& reader) {
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  std::int64_t seconds = 0;
  std::int64_t fraction = 0;
  if (!reader.digits(2, hours) || !reader.take(':') || !reader.digits(2, minutes)) {
    return std::nullopt;
  }
  if (reader.take(':')) {
    if (!reader.digits(2, seconds)) return std::nullopt;
    if (reader.take('.') && !reader.fraction(fraction)) return std::nullopt;
  }
  if (hours > 23 || minutes > 59 || seconds > 59) return std::nullopt;
  return ((hours * 60 + minutes) * 60 + seconds) * kMicroseconds + fraction;
}

/// Z, +HH, +HHMM or +HH:MM, or nothing.
std::optional<std::int64_t> take_offset(Reader& reader) {
  if (reader.at_end() || reader.take('Z') || reader.take('z')) return 0;
  const bool negative = reader.take('-');
  if (!negative && !reader.take('+')) return std::nullopt;
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  if (!reader.digits(2, hours)) return std::nullopt;
  if (reader.take(':') ? !reader.digits(2, minutes)
                       : !reader.at_end() && !reader.digits(2, minutes)) {
    return std::nullopt;
  }
  if (hours > 15 || minutes > 59) return std::nullopt;
  const std::int64_t offset = (hours * 60 + minutes) * 60 * kMicroseconds;
  return negative ? -offset : offset;
}

void append_padded(std::string& out, std::int64_t value, std::size_t width) {
  const std::string digits = std::to_string(value);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text) {
  Reader reader(text);
  const auto days = take_date(reader);
  return days && reader.at_end() ? days : std::nullopt;
}

std::optional<std::int64_t> parse_timestamp(std::string_view text) {
  Reader reader(text);
  const auto days = take_date(reader);
  if (!days) return std::nullopt;
  const std::int64_t value = *days * wire::kMicrosecondsPerDay;
  if (reader.at_end()) return value;
  if (!reader.take(' ') && !reader.take('T') && !reader.take('t')) return std::nullopt;
  const auto time = take_time(reader);
  if (!time) return std::nullopt;
  const auto offset = take_offset(reader);
  if (!offset || !reader.at_end()) return std::nullopt;
  return value + *time - *offset;
}

void append_date(std::string& out, std::int64_t days) {
  const Civil date = civil_of(days);
  if (date.year < 0) out += '-';
  append_padded(out, date.year < 0 ? -date.year : date.year, 4);
  out += '-';
  append_padded(out, date.month, 2);
  out += '-';
  append_padded(out, date.day, 2);
}

void append_timestamp(std::string& out, std::int64_t microseconds) {
  std::int64_t days = microseconds / wire::kMicrosecondsPerDay;
  std::int64_t rest = microseconds % wire::kMicrosecondsPerDay;
  if (rest < 0) {
    rest += wire::kMicrosecondsPerDay;
    --days;
  }
  append_date(out, days);
  const std::int64_t seconds = rest / kMicroseconds;
  out += ' ';
  append_padded(out, seconds / 3600, 2);
  out += ':';
  append_padded(out, seconds / 60 % 60, 2);
  out += ':';
  append_padded(out, seconds % 60, 2);
  std::int64_t fraction = rest % kMicroseconds;
  if (fraction == 0) return;
  std::size_t width = 6;
  for (; fraction % 10 == 0; fraction /= 10) --width;
  out += '.';
  append_padded(out, fraction, width);
}

}  // namespace espalier::table
