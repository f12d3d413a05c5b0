// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

#include <cstdint>

namespace espalier::base {
namespace {

std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

bool is_continuation(char c) { return (byte_of(c) & 0xC0) == 0x80; }

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const std::uint8_t lead = byte_of(text[0]);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (const char c : text.substr(1, length - 1)) {
    if (!is_continuation(c)) return 0;
  }
  // The second byte decides the cases that the lead byte alone leaves open.
  const std::uint8_t second = byte_of(text[1]);
  if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
  if (lead == 0xED && second > 0x9F) return 0;  // surrogates
  if (lead == 0xF0 && second < 0x90) return 0;  // overlong
  if (lead == 0xF4 && second > 0x8F) return 0;  // above 10FFFF
  return length;
}

std::size_t utf8_prefix_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_sequence_bytes(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

}  // namespace espalier::base
