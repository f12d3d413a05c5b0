// SPDX-License-Identifier: Apache-2.0
#include "tools/numbers.hpp"

#include <fmt/format.h>

#include <array>

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

std::string format_nanoseconds(double ns) {
  constexpr std::array kUnits{"us", "ms", "s"};
  if (ns < 1000) return fmt::format("{:.0f} ns", ns);
  double scaled = ns / 1000;
  std::size_t unit = 0;
  // 999.95 would be shown as 1000.0 of the smaller unit.
  for (; scaled >= 999.95 && unit + 1 < kUnits.size(); ++unit) scaled /= 1000;
  return fmt::format("{:.1f} {}", scaled, kUnits[unit]);
}

}  // namespace espalier::tools
