// SPDX-License-Identifier: Apache-2.0
// LIKE: `%` stands for any text, `_` for one code point of UTF-8, and a backslash takes from the
// character behind it whatever meaning it has.
//
// Text may be any bytes. A code point is a lead byte with as many continuation bytes as it
// announces, as far as they are there; every other byte is one by itself.
//
// Thread: values; matching is const.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::table {

/// What is wrong with a pattern, null if nothing: it must be UTF-8, and no backslash stands last.
[[nodiscard]] const char* wrong_with_pattern(std::string_view pattern);

/// Whether a text is like a pattern, worked out step by step. Requires: the pattern is right.
/// Cost: at most the product of both lengths.
[[nodiscard]] bool is_like(std::string_view text, std::string_view pattern);

/// Bytes of the code point at the front. Requires: `text` is not empty.
[[nodiscard]] std::size_t code_point_bytes(std::string_view text);

/// A pattern made ready for many texts; is_like() is its oracle. Requires: the pattern is right.
class LikePattern {
 public:
  explicit LikePattern(std::string_view pattern);

  [[nodiscard]] bool matches(std::string_view text) const;

 private:
  std::string pattern_;
  /// Without `_`: the literals between the `%`, of which the first and the last are anchored.
  bool literal_ = true;
  std::vector<std::string> parts_;
};

}  // namespace espalier::table
