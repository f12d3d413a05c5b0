// SPDX-License-Identifier: Apache-2.0
// Integers of 128 bits, which neither sums of 64-bit integers nor one product of two leave.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace espalier::table {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// Combines the halves in a result's row.
[[nodiscard]] constexpr Wide wide_of(std::int64_t low, std::int64_t high) noexcept {
  return static_cast<Wide>(UnsignedWide{static_cast<std::uint64_t>(high)} << 64 |
                           static_cast<std::uint64_t>(low));
}
[[nodiscard]] constexpr std::int64_t low_half(Wide value) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
}
[[nodiscard]] constexpr std::int64_t high_half(Wide value) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value >> 64));
}

/// Decimal digits, with `scale` of them behind a point.
[[nodiscard]] inline std::string to_text(Wide value, unsigned scale = 0) {
  UnsignedWide rest = static_cast<UnsignedWide>(value);
  if (value < 0) rest = 0 - rest;
  std::string reversed;
  for (unsigned digits = 0; rest != 0 || digits <= scale; ++digits) {
    if (digits == scale && scale != 0) reversed += '.';
    reversed += static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  }
  if (value < 0) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

}  // namespace espalier::table
