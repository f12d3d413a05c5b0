// SPDX-License-Identifier: Apache-2.0
// Values that have names on the command line and in results: tables of pairs of both.
#pragma once

#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

namespace espalier::bench {

/// "?": no name.
template <class Pairs, class Value>
[[nodiscard]] std::string_view name_in(const Pairs& pairs, Value value) {
  for (const auto& [name, other] : pairs) {
    if (other == value) return name;
  }
  return "?";
}

/// Nothing: unknown name.
template <class Pairs>
[[nodiscard]] auto value_in(const Pairs& pairs, std::string_view name)
    -> std::optional<std::remove_cvref_t<decltype(std::begin(pairs)->second)>> {
  for (const auto& [called, value] : pairs) {
    if (called == name) return value;
  }
  return std::nullopt;
}

}  // namespace espalier::bench
