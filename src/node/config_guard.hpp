// SPDX-License-Identifier: Apache-2.0
// Makes TOML safe for toml++ 3.3, which cannot handle two things:
//
// - Non-ASCII characters where it expects white space: undefined behaviour. TOML has them in
//   comments and strings only. Here they become '?' in comments, and escapes in strings that have
//   escapes; elsewhere they are rejected.
// - Dotted keys: it bounds the depth of values, but not of keys, and destroys tables recursively.
//   Here the dots of the whole file are bounded.
//
// The guard separates strings and comments from the rest as TOML does, and stops at the first text
// where it cannot; so up to the first error of a file it agrees with the parser. Lines keep their
// numbers.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace espalier::node {

/// Without sanitizers the stack suffices for more than ten times as many.
inline constexpr std::size_t kDotsMax = 1000;

struct GuardProblem {
  std::size_t line = 0;  ///< from 1
  std::string what;
};

/// The same TOML, safe to parse. Errors: invalid TOML, or more than kDotsMax dots in keys and
/// numbers.
[[nodiscard]] std::expected<std::string, GuardProblem> guard_toml(std::string_view text);

}  // namespace espalier::node
