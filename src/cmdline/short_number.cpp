// SPDX-License-Identifier: Apache-2.0
#include "cmdline/short_number.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace espalier::cmdline {

std::string short_number(double value) {
  constexpr std::array<std::pair<double, const char*>, 3> kUnits{
      {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& [unit, suffix] : kUnits) {
    if (value < unit) continue;
    const double scaled = value / unit;
    return fmt::format("{:.{}f}{}", scaled, scaled < 10 ? 2 : scaled < 100 ? 1 : 0, suffix);
  }
  return fmt::format("{:.0f}", value);
}

}  // namespace espalier::cmdline
