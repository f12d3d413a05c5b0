// SPDX-License-Identifier: Apache-2.0
// Key ranges as the map takes them: from low, included, to high, not included; empty is open.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace espalier::tools {

struct KeyRange {
  std::string low;
  std::string high;
};

/// All keys that begin with `prefix`. What lies above them begins with the prefix counted up by
/// one, the bytes that cannot be counted up (FF) left off; behind a prefix of FF alone there
/// is nothing.
[[nodiscard]] inline KeyRange prefix_range(std::string_view prefix) {
  std::string high(prefix);
  while (high.ends_with('\xFF')) high.pop_back();
  if (!high.empty()) high.back() = static_cast<char>(static_cast<unsigned char>(high.back()) + 1U);
  return {std::string(prefix), std::move(high)};
}

}  // namespace espalier::tools
