// SPDX-License-Identifier: Apache-2.0
// TOML as toml++ 3.3 can safely read it. Two things that may stand in a file are more than that
// parser bears:
//
// - Characters that are not ASCII, where it looks for white space: it ends in undefined behaviour.
//   TOML has them in comments and strings only. Here they become '?' in comments, and escapes in
//   strings that know escapes; elsewhere they are refused.
// - Dotted keys: it bounds the depth of values, but not of these, and destroys tables recursively.
//   Here the dots of the whole file are bounded.
//
// The guard tells strings and comments from all else as TOML does, and stops at the first text for
// which that cannot be told; so up to the first error of a file it and the parser agree. Lines stay
// lines.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace espalier::node {

/// Without sanitizers the stack is good for more than ten times as many.
inline constexpr std::size_t kDotsMax = 1000;

struct GuardProblem {
  std::size_t line = 0;  ///< from 1
  std::string what;
};

/// The same TOML, safe to parse. Errors: what cannot be TOML, or has more than kDotsMax dots in its
/// keys and numbers.
[[nodiscard]] std::expected<std::string, GuardProblem> guard_toml(std::string_view text);

}  // namespace espalier::node
