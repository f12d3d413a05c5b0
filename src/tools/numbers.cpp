// SPDX-License-Identifier: Apache-2.0
#include "tools/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <limits>

namespace espalier::tools {

std::string format_count(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double scaled = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0 of the smaller unit.
  for (; scaled >= 1023.95 && unit + 1 < kUnits.size(); ++unit) scaled /= 1024;
  return fmt::format("{:.1f} {}", scaled, kUnits[unit]);
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 1e9;
  const auto whole = static_cast<std::uint64_t>(seconds < kLongest ? seconds : kLongest);
  const std::uint64_t hours = whole / 3600;
  const std::uint64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::expected<std::uint64_t, std::string> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    unit += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  constexpr std::string_view kUnits = "KMGT";
  const std::size_t power = unit.empty() ? 0 : kUnits.find(unit[0]) + 1;  // npos + 1 is 0
  const std::string_view rest = std::string_view(unit).substr(unit.empty() ? 0 : 1);
  const bool unit_known = unit.empty() || unit == "B" ||
                          (power > 0 && (rest.empty() || rest == "B" || rest == "IB"));
  if (status == std::errc::invalid_argument || !unit_known) {
    return std::unexpected("is not a size; write for example 4096, 64K or 2GiB");
  }
  const std::size_t shift = 10 * power;
  if (status == std::errc::result_out_of_range ||
      number > (std::numeric_limits<std::uint64_t>::max() >> shift)) {
    return std::unexpected("is too large");
  }
  return number << shift;
}

}  // namespace espalier::tools
