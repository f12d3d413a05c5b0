// SPDX-License-Identifier: Apache-2.0
// Interface of regular expressions for executors. The compiler is src/regex, which links other
// libraries; this one, which applications link too, does not.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace espalier::table {

/// A compiled regular expression.
class Regex {
 public:
  virtual ~Regex() = default;
  /// found[i] is 1 if it matches anywhere in texts[i], which may be any bytes, else 0. Unless
  /// `ahead` is 0, prefetches what lies so many bytes after each text.
  /// Cost: linear in the texts.
  virtual void search(std::span<const std::string_view> texts, std::size_t ahead,
                      std::uint8_t* found) const = 0;
};

/// Options of a regular expression.
struct RegexOptions {
  bool ignore_case = false;

  friend bool operator==(const RegexOptions&, const RegexOptions&) = default;
};

class RegexCompiler {
 public:
  virtual ~RegexCompiler() = default;
  /// Errors: in words, why it is invalid, or that it is too large.
  [[nodiscard]] virtual std::expected<std::shared_ptr<const Regex>, std::string> compile(
      std::string_view pattern, RegexOptions options) = 0;
};

}  // namespace espalier::table
