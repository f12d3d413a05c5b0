// SPDX-License-Identifier: Apache-2.0
// Bytes as hexadecimal digits, the way keys and secrets are written.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace espalier::crypto {

[[nodiscard]] constexpr std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

/// Returns whether these are as many digits as the bytes take, and nothing else. If not, the bytes
/// are what they were, or a part of what was read.
[[nodiscard]] inline bool parse_hex(std::string_view digits, std::span<std::byte> bytes) {
  if (digits.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = hex_digit(digits[2 * i]);
    const auto low = hex_digit(digits[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  return true;
}

inline void append_hex(std::span<const std::byte> bytes, std::string& text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
}

[[nodiscard]] inline std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  append_hex(bytes, text);
  return text;
}

}  // namespace espalier::crypto
