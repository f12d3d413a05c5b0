// SPDX-License-Identifier: Apache-2.0
#include "regex/testing/random_regex.hpp"

#include <array>

#include "regex/compiled_regex.hpp"

namespace espalier::regex {
namespace {

std::string piece(base::Random& random, unsigned depth);

std::string sequence(base::Random& random, unsigned depth) {
  std::string text;
  for (std::uint64_t n = random.below(4); n-- > 0;) text += piece(random, depth);
  return text;
}

std::string atom(base::Random& random, unsigned depth) {
  constexpr std::array<std::string_view, 46> kAtoms = {"a",
                                                       "b",
                                                       "k",
                                                       "s",
                                                       "S",
                                                       "K",
                                                       "ab",
                                                       "\xC3\xA9",
                                                       "\xC5\xBF",
                                                       ".",
                                                       "\\n",
                                                       "\\.",
                                                       "\\x61",
                                                       "\\x{e9}",
                                                       "[ab]",
                                                       "[^a]",
                                                       "[a-k]",
                                                       "[^\\n]",
                                                       "\\d",
                                                       "\\D",
                                                       "\\w",
                                                       "\\W",
                                                       "\\s",
                                                       "\\S",
                                                       "[\\w-]",
                                                       "[\\d.]",
                                                       "[-a]",
                                                       "[]a]",
                                                       "[^]a]",
                                                       "\\pL",
                                                       "[[:alpha:]]",
                                                       "\\b",
                                                       "\\B",
                                                       "^",
                                                       "$",
                                                       "\\A",
                                                       "\\z",
                                                       "\\C",
                                                       "\\Qa.\\E",
                                                       "\\v",
                                                       " ",
                                                       "0",
                                                       "]",
                                                       "}",
                                                       "\\t",
                                                       "[\xC3\xA9"
                                                       "a]"};
  if (depth > 0 && random.chance(0.3)) {
    constexpr std::array<std::string_view, 4> kOpenings = {"(", "(?:", "(?P<n>", "(?i:"};
    std::string text(kOpenings[random.below(random.chance(0.8) ? 2 : 4)]);
    text += sequence(random, depth - 1);
    for (std::uint64_t n = random.below(3); n-- > 0;) text += "|" + sequence(random, depth - 1);
    return text + ")";
  }
  return std::string(kAtoms[random.below(kAtoms.size())]);
}

std::string piece(base::Random& random, unsigned depth) {
  constexpr std::array<std::string_view, 13> kRepeats = {
      "*", "+", "?", "*?", "+?", "??", "{2}", "{1,}", "{0,2}", "{2,3}?", "{,2}", "{x", "{0}"};
  std::string text = atom(random, depth);
  if (random.chance(0.35)) text += kRepeats[random.below(kRepeats.size())];
  return text;
}

}  // namespace

std::string random_pattern(base::Random& random) {
  constexpr std::array<std::string_view, 6> kFlags = {"(?i)", "(?s)", "(?is)", "(?m)", "(?U)", "^"};
  std::string text;
  if (random.chance(0.25)) text += kFlags[random.below(kFlags.size())];
  text += piece(random, 2) + sequence(random, 2);
  if (random.chance(0.2)) text += "|" + sequence(random, 2);
  if (random.chance(0.15)) text += "$";
  return text;
}

std::string random_search_text(base::Random& random, std::size_t pieces_max) {
  constexpr std::array<std::string_view, 24> kPieces = {
      "a",    "b",    "k",    "S",  "ab", "A",       "0", "9",        "_",
      " ",    "\n",   ".",    "-",  "]",  "\t",      "s", "\xC3\xA9", "\xE2\x84\xAA",
      "\xC3", "\xA9", "\xFF", "\v", "\r", "\xC5\xBF"};
  std::string text;
  const bool ascii = random.chance(0.5);
  for (std::uint64_t n = random.below(pieces_max + 1); n-- > 0;) {
    const std::string_view next = kPieces[random.below(kPieces.size())];
    if (!ascii || static_cast<unsigned char>(next.front()) < 0x80) text += next;
  }
  if (random.chance(0.05)) text += '\0';
  return text;
}

Compared compare_engines(std::string_view pattern, table::RegexOptions options,
                         const std::vector<std::string>& texts) {
  Compared compared;
  const auto oracle = CompiledRegex::compile(pattern, options, Engines::re2_only);
  const auto both = CompiledRegex::compile(pattern, options);
  if (oracle.has_value() != both.has_value()) compared.difference = "one is refused";
  if (!oracle || !both) {
    compared.refused = true;
    return compared;
  }
  compared.hyperscan = (*both)->has_hyperscan();
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<std::uint8_t> wanted(texts.size());
  std::vector<std::uint8_t> found(texts.size());
  (*oracle)->search(views, 0, wanted.data());
  (*both)->search(views, 1000, found.data());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    compared.found += wanted[i];
    if (wanted[i] == found[i]) continue;
    compared.difference = "pattern '" + std::string(pattern) + "'" +
                          (options.ignore_case ? " (without case)" : "") + ", text '" + texts[i] +
                          "': " + (found[i] != 0 ? "found" : "not found") + " by Hyperscan";
    break;
  }
  return compared;
}

}  // namespace espalier::regex
