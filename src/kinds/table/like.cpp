// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/like.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

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

constexpr std::uint32_t kAny = 0x100;  // no code point: that of one byte is less, of more has more

std::uint32_t symbol_of(std::string_view code_point) {
  std::uint32_t symbol = 0;
  for (const char c : code_point) symbol = symbol << 8 | static_cast<unsigned char>(c);
  return symbol;
}

void append(std::string& text, std::uint32_t symbol) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    const auto byte = static_cast<char>(symbol >> shift);
    if (shift == 0 || symbol >> shift != 0) text += byte;
  }
}

std::size_t code_points(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(code_point_bytes(text));
  return count;
}

// False: there are not so many code points.
bool skip(std::string_view& text, std::size_t count) {
  for (; count != 0 && !text.empty(); --count) text.remove_prefix(code_point_bytes(text));
  return count == 0;
}

// Takes these symbols off the front, if they stand there.
bool take_front(std::string_view& text, const std::vector<std::uint32_t>& symbols) {
  for (const std::uint32_t symbol : symbols) {
    if (text.empty()) return false;
    const std::size_t bytes = code_point_bytes(text);
    if (symbol != kAny && symbol != symbol_of(text.substr(0, bytes))) return false;
    text.remove_prefix(bytes);
  }
  return true;
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

LikePattern::LikePattern(std::string_view pattern) : parts_(1), segments_(1) {
  ESPALIER_ASSERT(wrong_with_pattern(pattern) == nullptr);
  bool literal = true;
  for (std::size_t p = 0; p < pattern.size();) {
    if (pattern[p] == '%') {
      parts_.emplace_back();
      segments_.emplace_back();
      ++p;
    } else if (pattern[p] == '_') {
      literal = false;
      segments_.back().symbols.push_back(kAny);
      ++p;
    } else {
      if (pattern[p] == '\\') ++p;
      const std::size_t bytes = code_point_bytes(pattern.substr(p));
      parts_.back() += pattern.substr(p, bytes);
      segments_.back().symbols.push_back(symbol_of(pattern.substr(p, bytes)));
      p += bytes;
    }
  }
  if (literal) {
    segments_.clear();
  } else {
    parts_.clear();
  }
  for (std::size_t i = 1; i + 1 < segments_.size(); ++i) prepare(segments_[i]);
}

// What stands between two `%`.
void LikePattern::prepare(Segment& segment) {
  std::vector<Symbol>& symbols = segment.symbols;
  const auto is_literal = [](Symbol symbol) { return symbol != kAny; };
  const auto begin = std::ranges::find_if(symbols, is_literal);
  segment.before = static_cast<std::size_t>(begin - symbols.begin());
  symbols.erase(symbols.begin(), begin);
  while (!symbols.empty() && symbols.back() == kAny) {
    symbols.pop_back();
    ++segment.behind;
  }
  if (std::ranges::find(symbols, kAny) != symbols.end()) {
    segment.finder.emplace(symbols);
    return;
  }
  for (const Symbol symbol : symbols) append(segment.literal, symbol);
}

bool LikePattern::matches(std::string_view text) const {
  return segments_.empty() ? matches_literals(text) : matches_segments(text);
}

bool LikePattern::matches_literals(std::string_view text) const {
  const std::string& first = parts_.front();
  const std::string& last = parts_.back();
  if (parts_.size() == 1) return text == first;
  if (text.size() < first.size() + last.size()) return false;
  if (!text.starts_with(first) || !text.ends_with(last)) return false;
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const std::size_t found = find_literal(text, parts_[i]);
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + parts_[i].size());
  }
  return true;
}

// The first place of a literal in a text, in linear time: what is quick where both are short tries
// each place anew.
std::size_t LikePattern::find_literal(std::string_view text, std::string_view literal) {
  constexpr std::size_t kFew = 4096;
  if (text.size() * literal.size() <= kFew) return text.find(literal);
  const void* const found = memmem(text.data(), text.size(), literal.data(), literal.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// What a match has taken ends where a code point does: a literal is whole code points, of which
// none begins inside another.
bool LikePattern::matches_segments(std::string_view text) const {
  if (!take_front(text, segments_.front().symbols)) return false;
  if (segments_.size() == 1) return text.empty();
  for (std::size_t i = 1; i + 1 < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (!skip(text, segment.before)) return false;
    std::size_t end = 0;
    if (segment.finder) {
      end = segment.finder->find(text);
    } else if (!segment.literal.empty()) {
      end = find_literal(text, segment.literal);
      if (end != std::string_view::npos) end += segment.literal.size();
    }
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end);
    if (!skip(text, segment.behind)) return false;
  }
  const std::vector<Symbol>& last = segments_.back().symbols;
  const std::size_t left = code_points(text);
  return left >= last.size() && skip(text, left - last.size()) && take_front(text, last);
}

LikePattern::Finder::Finder(const std::vector<Symbol>& symbols)
    : words_((symbols.size() + 63) / 64), last_(symbols.size() - 1), places_(words_) {
  ESPALIER_ASSERT(!symbols.empty() && words_ <= kWordsMax);
  std::ranges::fill(ascii_, std::uint16_t{0});
  std::uint16_t rows = 1;
  for (const Symbol symbol : symbols) {
    if (symbol == kAny) continue;
    if (symbol < 128) {
      if (ascii_[symbol] == 0) ascii_[symbol] = rows++;
      continue;
    }
    const auto at = std::ranges::lower_bound(others_, symbol, {}, &Other::first);
    if (at == others_.end() || at->first != symbol) others_.insert(at, {symbol, rows++});
  }
  places_.resize(rows * words_);
  for (std::size_t place = 0; place < symbols.size(); ++place) {
    const std::uint64_t bit = std::uint64_t{1} << place % 64;
    if (symbols[place] == kAny) {
      for (std::size_t row = 0; row < rows; ++row) places_[row * words_ + place / 64] |= bit;
    } else {
      const auto row = static_cast<std::size_t>(places_of(symbols[place]) - places_.data());
      places_[row + place / 64] |= bit;
    }
  }
}

const std::uint64_t* LikePattern::Finder::places_of(Symbol symbol) const {
  std::size_t row = 0;
  if (symbol < 128) {
    row = ascii_[symbol];
  } else if (!others_.empty()) {
    const auto at = std::ranges::lower_bound(others_, symbol, {}, &Other::first);
    if (at != others_.end() && at->first == symbol) row = at->second;
  }
  return places_.data() + row * words_;
}

// After each code point, bit i says whether the first i + 1 symbols stand right before here.
std::size_t LikePattern::Finder::find(std::string_view text) const {
  const std::uint64_t found = std::uint64_t{1} << last_ % 64;
  std::uint64_t stand[kWordsMax] = {};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = code_point_bytes(text.substr(at));
    const std::uint64_t* const places = places_of(symbol_of(text.substr(at, bytes)));
    at += bytes;
    std::uint64_t carried = 1;
    for (std::size_t word = 0; word < words_; ++word) {
      const std::uint64_t shifted = stand[word] << 1 | carried;
      carried = stand[word] >> 63;
      stand[word] = shifted & places[word];
    }
    if ((stand[words_ - 1] & found) != 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace espalier::table
