// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them in addresses and options: decimal digits, and nothing else.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace espalier::base {

/// The number, if all of the text is digits and it fits; no sign, no space, no empty text.
template <std::unsigned_integral T>
[[nodiscard]] std::optional<T> parse_digits(std::string_view text) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

}  // namespace espalier::base
