// SPDX-License-Identifier: Apache-2.0
#include "regex/common_subset.hpp"

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace espalier::regex {
namespace {

constexpr unsigned kDepthMax = 40;
constexpr unsigned kRepeatMax = 1000;

using Bytes = std::bitset<128>;  // of ASCII

bool is_upper(unsigned c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(unsigned c) { return c >= 'a' && c <= 'z'; }
bool is_digit(unsigned c) { return c >= '0' && c <= '9'; }
bool is_word(unsigned c) { return is_upper(c) || is_lower(c) || is_digit(c) || c == '_'; }

Bytes bytes_where(bool (*has)(unsigned)) {
  Bytes bytes;
  for (unsigned c = 0; c < bytes.size(); ++c) bytes[c] = has(c);
  return bytes;
}

/// The bytes that \d, \s and \w stand for in RE2; none of another letter.
std::optional<Bytes> perl_class(char letter) {
  switch (letter) {
    case 'd': return bytes_where(is_digit);
    case 'w': return bytes_where(is_word);
    case 's':
      return bytes_where(
          [](unsigned c) { return c == '\t' || c == '\n' || c == '\f' || c == '\r' || c == ' '; });
    default: return std::nullopt;
  }
}

std::string hex(unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

std::string class_text(const Bytes& bytes) {
  std::string text = "[";
  for (unsigned c = 0; c < bytes.size();) {
    if (!bytes[c]) {
      ++c;
      continue;
    }
    unsigned end = c;
    while (end + 1 < bytes.size() && bytes[end + 1]) ++end;
    text += hex(c);
    if (end > c) text += "-" + hex(end);
    c = end + 1;
  }
  return text + "]";
}

/// Reads a pattern from left to right and writes it anew; gives up at what it does not know.
class Writer {
 public:
  Writer(std::string_view pattern, bool ignore_case)
      : pattern_(pattern), ignore_case_(ignore_case) {}

  std::optional<CommonPattern> run() {
    leading_flags();
    if (!alternatives(0) || at_ != pattern_.size()) return std::nullopt;
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ == pattern_.size(); }
  [[nodiscard]] bool next_is(char c) const { return !at_end() && pattern_[at_] == c; }
  bool skip(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  void leading_flags();
  bool alternatives(unsigned depth);
  bool sequence(unsigned depth);
  bool piece(unsigned depth);
  bool group(unsigned depth);
  bool escape();
  bool literal();
  bool bracket();
  std::optional<Bytes> bracket_escape();
  bool repeat();
  bool counted();
  std::optional<unsigned> number();
  std::optional<unsigned> escaped_byte(char letter);
  bool write(Bytes bytes, bool complement = false);

  std::string_view pattern_;
  std::size_t at_ = 0;
  bool ignore_case_;
  bool dot_all_ = false;
  bool repeatable_ = false;  // the last piece matches bytes, or is a group
  CommonPattern out_;
};

/// (?i), (?s) or both, which hold for the whole pattern where they begin it.
void Writer::leading_flags() {
  const std::size_t end = pattern_.find(')');
  if (!pattern_.starts_with("(?") || end == std::string_view::npos) return;
  const std::string_view flags = pattern_.substr(2, end - 2);
  if (flags.empty() || flags.find_first_not_of("is") != std::string_view::npos) return;
  ignore_case_ = ignore_case_ || flags.find('i') != std::string_view::npos;
  dot_all_ = flags.find('s') != std::string_view::npos;
  at_ = end + 1;
}

bool Writer::alternatives(unsigned depth) {
  if (depth > kDepthMax) return false;
  for (;;) {
    if (!sequence(depth)) return false;
    if (!skip('|')) return true;
    out_.text += '|';
  }
}

bool Writer::sequence(unsigned depth) {
  while (!at_end() && !next_is('|') && !next_is(')')) {
    if (!piece(depth) || !repeat()) return false;
  }
  return true;
}

bool Writer::piece(unsigned depth) {
  repeatable_ = true;
  switch (pattern_[at_]) {
    case '(': return group(depth);
    case '[': return bracket();
    case '\\': return escape();
    case '.': {
      ++at_;
      Bytes bytes = Bytes().set();
      bytes['\n'] = dot_all_;
      out_.ascii_only = true;
      out_.text += class_text(bytes);
      return true;
    }
    case '^':
    case '$':
      out_.text += pattern_[at_++] == '^' ? "\\A" : "\\z";
      repeatable_ = false;
      return true;
    case '*':
    case '+':
    case '?':
    case '{': return false;
    default: return literal();
  }
}

bool Writer::group(unsigned depth) {
  ++at_;
  if (skip('?') && !skip(':')) return false;
  out_.text += "(?:";
  if (!alternatives(depth + 1) || !skip(')')) return false;
  out_.text += ')';
  repeatable_ = true;
  return true;
}

bool Writer::write(Bytes bytes, bool complement) {
  if (ignore_case_) {
    for (unsigned c = 'a'; c <= 'z'; ++c) {
      const bool either = bytes[c] || bytes[c - 'a' + 'A'];
      bytes[c] = bytes[c - 'a' + 'A'] = either;
    }
    // The Kelvin sign and the long s are other cases of these two.
    out_.ascii_only = out_.ascii_only || bytes['k'] || bytes['s'];
  }
  if (complement) {
    bytes.flip();
    out_.ascii_only = true;
  }
  if (bytes.none()) return false;
  out_.text += class_text(bytes);
  return true;
}

bool Writer::literal() {
  const auto first = static_cast<unsigned char>(pattern_[at_]);
  if (first < 0x80) {
    ++at_;
    Bytes one;
    one[first] = true;
    return write(one);
  }
  if (ignore_case_) return false;
  const std::size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (pattern_.size() - at_ < bytes) return false;
  out_.text += "(?:";
  for (std::size_t i = 0; i < bytes; ++i) {
    out_.text += hex(static_cast<unsigned char>(pattern_[at_++]));
  }
  out_.text += ')';
  return true;
}

/// The byte that \n and the like stand for, or a punctuation behind a backslash, which was read.
std::optional<unsigned> Writer::escaped_byte(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  switch (letter) {
    case 'a': return 7u;
    case 'f': return 12u;
    case 'n': return 10u;
    case 'r': return 13u;
    case 't': return 9u;
    case 'v': return 11u;
    case 'x': {
      unsigned value = 0;
      for (int i = 0; i < 2; ++i, ++at_) {
        if (at_end()) return std::nullopt;
        const auto c = static_cast<unsigned char>(pattern_[at_]);
        const unsigned lower = c | 0x20u;
        if (!is_digit(c) && (lower < 'a' || lower > 'f')) return std::nullopt;
        value = value * 16 + (is_digit(c) ? c - '0' : lower - 'a' + 10);
      }
      if (value >= 0x80) return std::nullopt;
      return value;
    }
    default: break;
  }
  if (byte >= 0x80 || is_word(byte)) return std::nullopt;
  return byte;
}

bool Writer::escape() {
  if (++at_ == pattern_.size()) return false;
  const char letter = pattern_[at_++];
  if (letter == 'A' || letter == 'z' || letter == 'b' || letter == 'B') {
    out_.text += {'\\', letter};
    repeatable_ = false;
    return true;
  }
  if (const auto bytes = perl_class(letter)) return write(*bytes);
  if (letter == 'D' || letter == 'S' || letter == 'W') {
    return write(*perl_class(static_cast<char>(letter | 0x20)), true);
  }
  const auto byte = escaped_byte(letter);
  if (!byte) return false;
  Bytes one;
  one[*byte] = true;
  return write(one);
}

std::optional<Bytes> Writer::bracket_escape() {
  if (++at_ == pattern_.size()) return std::nullopt;
  const char letter = pattern_[at_++];
  if (auto bytes = perl_class(letter)) return bytes;
  const auto byte = escaped_byte(letter);
  if (!byte) return std::nullopt;
  Bytes one;
  one[*byte] = true;
  return one;
}

/// A class in brackets, of single bytes, ranges and \d, \s, \w. A minus stands for itself only
/// where it is first or last.
bool Writer::bracket() {
  ++at_;
  const bool complement = skip('^');
  Bytes bytes;
  for (bool first = true; first || !next_is(']'); first = false) {
    if (at_end()) return false;
    const char c = pattern_[at_];
    if (static_cast<unsigned char>(c) >= 0x80 || c == '[') return false;
    const bool last_minus = c == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] == ']';
    if (c == '-' && !first && !last_minus) return false;
    Bytes low;
    if (c == '\\') {
      const auto escaped = bracket_escape();
      if (!escaped) return false;
      low = *escaped;
    } else {
      low[static_cast<unsigned char>(c)] = true;
      ++at_;
    }
    const bool range =
        next_is('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']' && !last_minus;
    if (!range) {
      bytes |= low;
      continue;
    }
    ++at_;
    if (low.count() != 1 || at_end()) return false;
    const auto high = static_cast<unsigned char>(pattern_[at_++]);
    if (high >= 0x80 || high == '\\' || high == '[') return false;
    unsigned from = 0;
    while (!low[from]) ++from;
    if (from > high) return false;
    for (; from <= high; ++from) bytes[from] = true;
  }
  ++at_;
  return write(bytes, complement);
}

std::optional<unsigned> Writer::number() {
  unsigned value = 0;
  const std::size_t begin = at_;
  while (!at_end() && is_digit(static_cast<unsigned char>(pattern_[at_])) && value <= kRepeatMax) {
    value = value * 10 + static_cast<unsigned>(pattern_[at_++] - '0');
  }
  if (at_ == begin || value > kRepeatMax) return std::nullopt;
  return value;
}

/// {n}, {n,} or {n,m}. RE2 takes other braces as they stand; here they end it.
bool Writer::counted() {
  ++at_;
  const auto least = number();
  if (!least) return false;
  std::string text = "{" + std::to_string(*least);
  if (skip(',')) {
    text += ',';
    if (!next_is('}')) {
      const auto most = number();
      if (!most || *most < *least) return false;
      text += std::to_string(*most);
    }
  }
  if (!skip('}')) return false;
  out_.text += text + "}";
  return true;
}

/// What stands behind a piece. Whether it takes as much as it can makes no difference to a search.
bool Writer::repeat() {
  if (at_end()) return true;
  const char c = pattern_[at_];
  if (c != '*' && c != '+' && c != '?' && c != '{') return true;
  if (!repeatable_) return false;
  if (c == '{') {
    if (!counted()) return false;
  } else {
    ++at_;
    out_.text += c;
  }
  skip('?');
  return at_end() || (pattern_[at_] != '*' && pattern_[at_] != '+' && pattern_[at_] != '?' &&
                      pattern_[at_] != '{');
}

}  // namespace

std::optional<CommonPattern> common_pattern(std::string_view pattern, bool ignore_case) {
  return Writer(pattern, ignore_case).run();
}

}  // namespace espalier::regex
