// SPDX-License-Identifier: Apache-2.0
// Patterns and texts by chance, which meet often, and both engines held against each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "regex/regex.hpp"

namespace espalier::regex {

/// Mostly a pattern that RE2 takes.
[[nodiscard]] std::string random_pattern(base::Random& random);
/// Of the letters of the patterns, with bytes that are no UTF-8, and line ends.
[[nodiscard]] std::string random_search_text(base::Random& random, std::size_t pieces_max);

/// Texts on which RE2 alone and both engines together differ; empty where they do not. None are
/// compared where RE2 refuses the pattern.
struct Compared {
  bool refused = false;
  bool hyperscan = false;   ///< it searched
  std::uint64_t found = 0;  ///< texts in which the pattern matches
  std::string difference;
};
[[nodiscard]] Compared compare_engines(std::string_view pattern, table::RegexOptions options,
                                       const std::vector<std::string>& texts);

}  // namespace espalier::regex
