// SPDX-License-Identifier: Apache-2.0
#include "log/format.hpp"

namespace espalier::log {
namespace {

constexpr std::string_view kSegmentBegin = "log-";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::size_t kNumberDigits = 16;

}  // namespace

std::string numbered_name(std::string_view begin, std::uint64_t number, std::string_view end) {
  std::string name(begin);
  for (std::size_t digit = kNumberDigits; digit-- > 0;) {
    name += kDigits[number >> (4 * digit) & 0xF];
  }
  return name.append(end);
}

std::optional<std::uint64_t> number_in(std::string_view name, std::string_view begin,
                                       std::string_view end) {
  if (name.size() != begin.size() + kNumberDigits + end.size()) return std::nullopt;
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  std::uint64_t number = 0;
  for (const char letter : name.substr(begin.size(), kNumberDigits)) {
    const std::size_t digit = kDigits.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    number = number << 4 | digit;
  }
  return number;
}

std::string segment_name(std::uint64_t segment, std::string_view end) {
  return numbered_name(kSegmentBegin, segment, end);
}

std::optional<std::uint64_t> segment_of(std::string_view name, std::string_view end) {
  return number_in(name, kSegmentBegin, end);
}

}  // namespace espalier::log
