// SPDX-License-Identifier: Apache-2.0
// Regular expressions with the same meaning in RE2 and Hyperscan, rewritten for the latter.
//
// Hyperscan reads PCRE's syntax, in which `$` also matches before a last newline, `\s` has another
// character, and much else differs; in its UTF-8 mode, texts that are not UTF-8 are undefined. So
// no pattern is passed unchanged. Supported constructs are rewritten in terms of bytes: `$` as \z,
// each class as its bytes. Everything else is left to RE2.
//
// `.`, complements, and letters with another case outside ASCII match code points, which equal
// bytes only in ASCII texts: such patterns are marked.
//
// Thread: functions of values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier::regex {

struct CommonPattern {
  std::string text;         ///< for Hyperscan, in its mode of bytes
  bool ascii_only = false;  ///< valid only for texts without bytes from 0x80
};

/// Nullopt: only RE2 supports it. Requires: RE2 accepts it, as UTF-8.
/// Cost: linear in the pattern.
[[nodiscard]] std::optional<CommonPattern> common_pattern(std::string_view pattern,
                                                          bool ignore_case);

}  // namespace espalier::regex
