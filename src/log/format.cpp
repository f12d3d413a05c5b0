// SPDX-License-Identifier: Apache-2.0
#include "log/format.hpp"

namespace espalier::log {
namespace {

constexpr std::string_view kBegin = "log-";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kNumberDigits = 16;

}  // namespace

std::string segment_name(std::uint64_t segment, std::string_view end) {
  std::string name(kBegin);
  for (std::size_t digit = kNumberDigits; digit-- > 0;) {
    name += kDigits[segment >> (4 * digit) & 0xF];
  }
  return name.append(end);
}

std::optional<std::uint64_t> segment_of(std::string_view name, std::string_view end) {
  if (name.size() != kBegin.size() + kNumberDigits + end.size()) return std::nullopt;
  if (!name.starts_with(kBegin) || !name.ends_with(end)) return std::nullopt;
  std::uint64_t segment = 0;
  for (const char letter : name.substr(kBegin.size(), kNumberDigits)) {
    const std::size_t digit = kDigits.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    segment = segment << 4 | digit;
  }
  return segment;
}

}  // namespace espalier::log
