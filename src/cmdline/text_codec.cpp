// SPDX-License-Identifier: Apache-2.0
#include "cmdline/text_codec.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"

namespace espalier::cmdline {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

constexpr std::uint8_t byte_of(char c) { return static_cast<std::uint8_t>(c); }

void append_hex(std::string& out, char c) {
  out += kHexDigits[byte_of(c) >> 4];
  out += kHexDigits[byte_of(c) & 15];
}

/// The value of a hex digit, or -1.
constexpr int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// The code point of a well-formed sequence of two to four bytes.
std::uint32_t code_point(std::string_view sequence) {
  const unsigned lead_bits = 7U - static_cast<unsigned>(sequence.size());
  std::uint32_t point = byte_of(sequence[0]) & ((1U << lead_bits) - 1U);
  for (const char c : sequence.substr(1)) point = (point << 6) | (byte_of(c) & 0x3FU);
  return point;
}

/// Characters that are well-formed but change how a terminal shows what follows: C1 controls, line
/// and paragraph separators, and the marks that embed, override or isolate a writing direction.
constexpr bool steers_terminal(std::uint32_t point) {
  return (point >= 0x80 && point <= 0x9F) || point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         point == 0xFEFF;
}

/// Appends the short escape of `c` if it has one.
bool append_short_escape(std::string& out, char c) {
  switch (c) {
    case '\\': out += "\\\\"; return true;
    case '\t': out += "\\t"; return true;
    case '\n': out += "\\n"; return true;
    case '\r': out += "\\r"; return true;
    default: return false;
  }
}

void encode_escaped(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const char c = bytes.front();
    const std::size_t length = base::utf8_sequence_bytes(bytes);
    const bool printable_ascii = length == 1 && c >= 0x20 && c != 0x7F;
    const bool printable = length > 1 && !steers_terminal(code_point(bytes.substr(0, length)));
    if (append_short_escape(out, c)) {
      bytes.remove_prefix(1);
    } else if (printable_ascii || printable) {
      out += bytes.substr(0, length);
      bytes.remove_prefix(length);
    } else {
      out += "\\x";
      append_hex(out, c);
      bytes.remove_prefix(1);
    }
  }
}

void encode_tsv(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t plain = std::min(bytes.find_first_of("\\\t\n\r"), bytes.size());
    out += bytes.substr(0, plain);
    bytes.remove_prefix(plain);
    if (!bytes.empty()) {
      append_short_escape(out, bytes.front());
      bytes.remove_prefix(1);
    }
  }
}

std::optional<std::string> decode_hex(std::string& out, std::string_view text) {
  if (text.size() % 2 != 0) {
    return fmt::format("hex text has {} digits; two are needed for each byte", text.size());
  }
  for (std::size_t at = 0; at < text.size(); at += 2) {
    const int high = digit_value(text[at]);
    const int low = digit_value(text[at + 1]);
    if (high < 0 || low < 0) {
      return fmt::format("'{}' at position {} is not a hex byte",
                         encode(text.substr(at, 2), Encoding::escaped), at + 1);
    }
    out += static_cast<char>(high * 16 + low);
  }
  return std::nullopt;
}

std::optional<std::string> decode_escaped(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t backslash = std::min(text.find('\\', at), text.size());
    out += text.substr(at, backslash - at);
    if (backslash == text.size()) return std::nullopt;
    const std::string_view escape = text.substr(backslash, 4);
    at = backslash + 2;
    switch (escape.size() > 1 ? escape[1] : '\0') {
      case '\\': out += '\\'; continue;
      case 't': out += '\t'; continue;
      case 'n': out += '\n'; continue;
      case 'r': out += '\r'; continue;
      case 'x': break;
      default:
        return fmt::format("'{}' at position {} is no escape; write \\\\ for a backslash",
                           encode(escape.substr(0, 2), Encoding::tsv), backslash + 1);
    }
    const int high = escape.size() == 4 ? digit_value(escape[2]) : -1;
    const int low = escape.size() == 4 ? digit_value(escape[3]) : -1;
    if (high < 0 || low < 0) {
      return fmt::format("\\x at position {} needs two hex digits", backslash + 1);
    }
    out += static_cast<char>(high * 16 + low);
    at = backslash + 4;
  }
  return std::nullopt;
}

}  // namespace

void encode_to(std::string& out, std::string_view bytes, Encoding encoding) {
  switch (encoding) {
    case Encoding::raw: out += bytes; return;
    case Encoding::hex:
      for (const char c : bytes) append_hex(out, c);
      return;
    case Encoding::escaped: encode_escaped(out, bytes); return;
    case Encoding::tsv: encode_tsv(out, bytes); return;
  }
}

std::string encode(std::string_view bytes, Encoding encoding) {
  std::string out;
  encode_to(out, bytes, encoding);
  return out;
}

std::optional<std::string> decode_to(std::string& out, std::string_view text, Encoding encoding) {
  switch (encoding) {
    case Encoding::raw: out += text; return std::nullopt;
    case Encoding::hex: return decode_hex(out, text);
    case Encoding::escaped:
    case Encoding::tsv: return decode_escaped(out, text);
  }
  return "unknown encoding";
}

std::expected<std::string, std::string> decode(std::string_view text, Encoding encoding) {
  std::string out;
  if (auto wrong = decode_to(out, text, encoding)) return std::unexpected(std::move(*wrong));
  return out;
}

}  // namespace espalier::cmdline
