// SPDX-License-Identifier: Apache-2.0
// Numbers as other programs read them from our texts.
//
// Thread: any.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace espalier::dataplane {

/// "0x" and at least so many digits. Requires: digits_min <= 16.
[[nodiscard]] inline std::string hexadecimal(std::uint64_t number, std::size_t digits_min = 1) {
  char text[16];
  const std::string_view digits(text, std::to_chars(text, text + sizeof text, number, 16).ptr);
  const std::size_t missing = digits_min > digits.size() ? digits_min - digits.size() : 0;
  return "0x" + std::string(missing, '0').append(digits);
}

}  // namespace espalier::dataplane
