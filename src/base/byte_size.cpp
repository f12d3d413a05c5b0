// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <limits>

namespace espalier::base {

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
  const bool unit_known =
      unit.empty() || unit == "B" || (power > 0 && (rest.empty() || rest == "B" || rest == "IB"));
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

std::string exact_bytes(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes == 0) return "0B";
  const auto zeros = static_cast<std::size_t>(std::countr_zero(bytes));
  const std::size_t power = std::min(zeros / 10, kUnits.size() - 1);
  return std::to_string(bytes >> (10 * power)) + kUnits[power];
}

}  // namespace espalier::base
