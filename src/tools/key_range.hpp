// SPDX-License-Identifier: Apache-2.0
// Key ranges of maps: [low, high); an empty bound is open.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace espalier::tools {

struct KeyRange {
  std::string low;
  std::string high;
};

/// All keys that begin with `prefix`. The upper bound is the prefix incremented by one, without
/// trailing FF bytes; after a prefix of FF alone there is none.
[[nodiscard]] inline KeyRange prefix_range(std::string_view prefix) {
  std::string high(prefix);
  while (high.ends_with('\xFF')) high.pop_back();
  if (!high.empty()) high.back() = static_cast<char>(static_cast<unsigned char>(high.back()) + 1U);
  return {std::string(prefix), std::move(high)};
}

}  // namespace espalier::tools
