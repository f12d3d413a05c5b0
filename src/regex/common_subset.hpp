// SPDX-License-Identifier: Apache-2.0
// Regular expressions that mean the same to RE2 and to Hyperscan, written for the latter.
//
// Hyperscan reads PCRE's syntax, in which `$` matches before a last newline too, `\s` has another
// character, and much else differs; in its UTF-8 mode, texts that are not UTF-8 are undefined. So
// no pattern is handed on as it came. What is understood here is written anew in terms of bytes:
// `$` as \z, each class as the bytes that it has. Everything else is left to RE2.
//
// `.`, complements, and letters that have another case outside ASCII match code points, of which
// bytes are only right where the text is ASCII: such patterns say so.
//
// Thread: functions of values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace espalier::regex {

struct CommonPattern {
  std::string text;         ///< for Hyperscan, in its mode of bytes
  bool ascii_only = false;  ///< it means the same only over texts without bytes from 0x80
};

/// None: RE2 alone knows what it means. Requires: RE2 takes it, as UTF-8.
/// Cost: linear in the pattern.
[[nodiscard]] std::optional<CommonPattern> common_pattern(std::string_view pattern,
                                                          bool ignore_case);

}  // namespace espalier::regex
