// SPDX-License-Identifier: Apache-2.0
#include "tools/hex_dump.hpp"

#include <fmt/format.h>

namespace espalier::tools {
namespace {

constexpr std::size_t kLineBytes = 16;

}  // namespace

std::string hex_dump(std::string_view bytes, std::uint64_t offset) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += kLineBytes) {
    const std::string_view line = bytes.substr(at, kLineBytes);
    text += fmt::format("{:08x} ", offset + at);
    for (std::size_t i = 0; i < kLineBytes; ++i) {
      if (i == kLineBytes / 2) text += ' ';
      text += i < line.size() ? fmt::format(" {:02x}", static_cast<unsigned char>(line[i])) : "   ";
    }
    text += "  |";
    for (const char c : line) text += c >= ' ' && c <= '~' ? c : '.';
    text += "|\n";
  }
  return text;
}

}  // namespace espalier::tools
