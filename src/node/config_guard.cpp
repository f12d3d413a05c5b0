// SPDX-License-Identifier: Apache-2.0
#include "node/config_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "node/config_text.hpp"

namespace espalier::node {
namespace {

/// The TOML context of a character.
enum class TomlPlace : std::uint8_t { outside, comment, basic, literal, long_basic, long_literal };

class Guard {
 public:
  explicit Guard(std::string_view text) : text_(text) { out_.reserve(text.size()); }

  std::expected<std::string, GuardProblem> run() {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    while (!text_.empty() && problem_.empty()) {
      const auto [code, bytes] = first_character(text_);
      if (bytes == 0) {
        problem_ = "is not UTF-8";
      } else if (bytes == 1) {
        take_ascii(text_.front());
      } else {
        take_other(code, bytes);
      }
    }
    if (!problem_.empty()) return std::unexpected(GuardProblem{line_, std::move(problem_)});
    return std::move(out_);
  }

 private:
  /// Copies characters unchanged. Passes a line's end only on its own.
  void pass(std::size_t count = 1) {
    if (text_.front() == '\n') ++line_;
    out_ += text_.substr(0, count);
    text_.remove_prefix(count);
  }

  void take_other(std::uint32_t code, std::size_t bytes) {
    switch (place_) {
      case TomlPlace::outside:
        problem_ = fmt::format("has {} outside of strings and comments",
                               in_short_quotes(text_.substr(0, bytes)));
        return;
      case TomlPlace::comment: out_ += '?'; break;
      case TomlPlace::basic:
      case TomlPlace::long_basic: out_ += fmt::format("\\U{:08X}", code); break;
      case TomlPlace::literal:
      case TomlPlace::long_literal: out_ += text_.substr(0, bytes); break;
    }
    text_.remove_prefix(bytes);
  }

  void take_ascii(char c) {
    switch (place_) {
      case TomlPlace::outside: return take_outside(c);
      case TomlPlace::comment:
        if (c == '\n') place_ = TomlPlace::outside;
        return pass();
      case TomlPlace::basic:
      case TomlPlace::literal:
        return take_in_string(c, c == (place_ == TomlPlace::basic ? '"' : '\''));
      case TomlPlace::long_basic:
      case TomlPlace::long_literal: return take_in_long_string(c);
    }
  }

  void take_outside(char c) {
    if (c == '#') place_ = TomlPlace::comment;
    if (c == '.' && ++dots_ > kDotsMax) {
      problem_ = fmt::format("has more than {} dots", kDotsMax);
      return;
    }
    if (c == '"' || c == '\'') {
      const bool is_long = text_.starts_with(c == '"' ? "\"\"\"" : "'''");
      place_ = c == '"' ? (is_long ? TomlPlace::long_basic : TomlPlace::basic)
                        : (is_long ? TomlPlace::long_literal : TomlPlace::literal);
      if (is_long) return pass(3);
    }
    pass();
  }

  void take_in_string(char c, bool closes) {
    if (c == '\n') {
      problem_ = "has a string that does not end on its line";
    } else if (c == '\\' && place_ == TomlPlace::basic) {
      take_escape();
    } else {
      if (closes) place_ = TomlPlace::outside;
      pass();
    }
  }

  void take_in_long_string(char c) {
    const char quote = place_ == TomlPlace::long_basic ? '"' : '\'';
    if (c == quote) {
      // Five quotes at the end are two of the string and three that close it.
      const std::string_view next = text_.substr(0, 5);
      const std::size_t run = std::min(next.find_first_not_of(quote), next.size());
      if (run >= 3) place_ = TomlPlace::outside;
      pass(run);
    } else if (c == '\\' && place_ == TomlPlace::long_basic) {
      take_escape();
    } else {
      pass();
    }
  }

  /// A backslash, and the character that it escapes: ASCII, and in a short string no line's end.
  void take_escape() {
    const bool may_end_line = place_ == TomlPlace::long_basic;
    if (text_.size() < 2 || static_cast<unsigned char>(text_[1]) >= 0x80 ||
        (text_[1] == '\n' && !may_end_line)) {
      problem_ = "has a backslash that escapes nothing";
      return;
    }
    pass();
    pass();
  }

  std::string_view text_;  // not read yet
  std::string out_;
  std::string problem_;
  TomlPlace place_ = TomlPlace::outside;
  std::size_t line_ = 1;
  std::size_t dots_ = 0;
};

}  // namespace

std::expected<std::string, GuardProblem> guard_toml(std::string_view text) {
  return Guard(text).run();
}

}  // namespace espalier::node
