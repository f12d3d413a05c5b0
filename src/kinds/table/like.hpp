// SPDX-License-Identifier: Apache-2.0
// LIKE: `%` matches any text, `_` one code point of UTF-8, and a backslash escapes the character
// after it.
//
// Text may be any bytes. A code point is a lead byte with as many continuation bytes as it
// announces, as far as present; every other byte counts as one code point.
//
// Thread: values; matching is const.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace espalier::table {

/// The mistake in a pattern, null if none: it must be UTF-8, and not end in a backslash.
[[nodiscard]] const char* wrong_with_pattern(std::string_view pattern);

/// Matches a text step by step. Requires: the pattern is valid. Cost: at most the product of both
/// lengths.
[[nodiscard]] bool is_like(std::string_view text, std::string_view pattern);

/// Bytes of the code point at the front. Requires: `text` is not empty.
[[nodiscard]] std::size_t code_point_bytes(std::string_view text);

/// A compiled pattern; is_like() is its oracle. Requires: the pattern is valid.
///
/// A pattern is split into segments at its `%`. Without `_` these are literals, searched as bytes.
/// With `_` texts are read by code points, and of each segment
///
///   - the first matches at the front of the text, the last at its end;
///   - of the others, `_` on either side only sets a minimum distance to the next one; the part
///     between, with `_` inside, is found by Shift-And [Baeza-Yates and Gonnet, A new approach to
///     text searching, 1992]: one bit for each code point of it.
///
/// Cost: linear in the text; if a segment has `_` inside, the text's length times one for each 64
/// code points of the segment.
class LikePattern {
 public:
  explicit LikePattern(std::string_view pattern);

  [[nodiscard]] bool matches(std::string_view text) const;
  /// Whether it has `_`, so that texts are read by code points.
  [[nodiscard]] bool counts_code_points() const { return !segments_.empty(); }

 private:
  /// A code point's bytes as one number, or a special one for `_`.
  using Symbol = std::uint32_t;
  /// Shift-And masks: at which positions of a segment a symbol may stand.
  class Finder {
   public:
    static constexpr std::size_t kWordsMax = 16;
    /// Requires: 1 to 64 kWordsMax symbols.
    explicit Finder(const std::vector<Symbol>& symbols);
    /// The end of the first match; npos: none.
    [[nodiscard]] std::size_t find(std::string_view text) const;

   private:
    using Other = std::pair<Symbol, std::uint16_t>;
    [[nodiscard]] const std::uint64_t* places_of(Symbol symbol) const;
    std::size_t words_;
    std::size_t last_;  // its position
    std::uint16_t ascii_[128];
    std::vector<Other> others_;  // sorted
    std::vector<std::uint64_t> places_;  // rows of words_; the first: of what only `_` stands for
  };
  struct Segment {
    std::vector<Symbol> symbols;
    // Of one between two `%`:
    std::size_t before = 0;  // code points of any kind
    std::size_t behind = 0;
    std::string literal;  // what is between them, where it has no `_`
    std::optional<Finder> finder;
  };

  [[nodiscard]] bool matches_literals(std::string_view text) const;
  [[nodiscard]] bool matches_segments(std::string_view text) const;
  static void prepare(Segment& segment);
  static std::size_t find_literal(std::string_view text, std::string_view literal);

  std::vector<std::string> parts_;  // without `_`
  std::vector<Segment> segments_;   // with it
};

}  // namespace espalier::table
