// SPDX-License-Identifier: Apache-2.0
#include "table/like.hpp"

#include <cstdint>

#include "base/assert.hpp"

namespace espalier::table {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::size_t announced_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte >= 0xC0 && byte < 0xE0) return 2;
  if (byte >= 0xE0 && byte < 0xF0) return 3;
  if (byte >= 0xF0 && byte < 0xF8) return 4;
  return 1;
}

}  // namespace

std::size_t code_point_bytes(std::string_view text) {
  const std::size_t announced = announced_bytes(text.front());
  std::size_t bytes = 1;
  while (bytes < announced && bytes < text.size() && is_continuation(text[bytes])) ++bytes;
  return bytes;
}

const char* wrong_with_pattern(std::string_view pattern) {
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '\\' && ++at == pattern.size()) return "the pattern ends with a backslash";
    const std::size_t bytes = code_point_bytes(pattern.substr(at));
    const bool bad_lead = static_cast<unsigned char>(pattern[at]) >= 0xF8;
    if (is_continuation(pattern[at]) || bad_lead || bytes != announced_bytes(pattern[at])) {
      return "the pattern is not UTF-8";
    }
    at += bytes;
  }
  return nullptr;
}

bool is_like(std::string_view text, std::string_view pattern) {
  constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t t = 0;
  std::size_t p = 0;
  std::size_t percent = kNone;  // behind the last % met, and the text from which it was tried
  std::size_t tried = 0;
  for (;;) {
    if (p < pattern.size() && pattern[p] == '%') {
      percent = ++p;
      tried = t;
      continue;
    }
    if (p == pattern.size() && t == text.size()) return true;
    if (p < pattern.size() && t < text.size()) {
      if (pattern[p] == '_') {
        t += code_point_bytes(text.substr(t));
        ++p;
        continue;
      }
      const std::size_t literal = pattern[p] == '\\' ? p + 1 : p;
      if (pattern[literal] == text[t]) {
        ++t;
        p = literal + 1;
        continue;
      }
    }
    // No match from here: the last % takes one code point more.
    if (percent == kNone || tried == text.size()) return false;
    tried += code_point_bytes(text.substr(tried));
    t = tried;
    p = percent;
  }
}

LikePattern::LikePattern(std::string_view pattern) : pattern_(pattern), parts_(1) {
  ESPALIER_ASSERT(wrong_with_pattern(pattern) == nullptr);
  for (std::size_t p = 0; p < pattern.size(); ++p) {
    if (pattern[p] == '%') {
      parts_.emplace_back();
    } else if (pattern[p] == '_') {
      literal_ = false;
    } else {
      if (pattern[p] == '\\') ++p;
      parts_.back() += pattern[p];
    }
  }
}

bool LikePattern::matches(std::string_view text) const {
  if (!literal_) return is_like(text, pattern_);
  const std::string& first = parts_.front();
  const std::string& last = parts_.back();
  if (parts_.size() == 1) return text == first;
  if (text.size() < first.size() + last.size()) return false;
  if (!text.starts_with(first) || !text.ends_with(last)) return false;
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const std::size_t found = text.find(parts_[i]);
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + parts_[i].size());
  }
  return true;
}

}  // namespace espalier::table
