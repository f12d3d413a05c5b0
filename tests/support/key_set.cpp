// SPDX-License-Identifier: Apache-2.0
#include "tests/support/key_set.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "tests/support/seed.hpp"

namespace espalier::test {
namespace {

std::string big_endian(std::uint64_t number, std::size_t bytes) {
  std::string key(bytes, '\0');
  for (std::size_t i = bytes; i-- > 0; number >>= 8) key[i] = static_cast<char>(number & 0xFF);
  return key;
}

std::string random_string(Random& random, std::size_t bytes) {
  std::string key(bytes, '\0');
  for (char& c : key) c = static_cast<char>(random.below(256));
  return key;
}

// A key of two byte values, its length drawn so that short keys and long runs are both common.
std::string two_valued(Random& random, std::size_t bytes_max, char usual, char rare) {
  const std::size_t short_max = std::min<std::size_t>(12, bytes_max);
  const std::size_t bytes = random.between(1, random.one_in(4) ? bytes_max : short_max);
  std::string key(bytes, usual);
  for (char& c : key) {
    if (random.one_in(3)) c = rare;
  }
  return key;
}

std::string draw(KeyPattern pattern, std::uint64_t i, std::size_t bytes_max, Random& random) {
  const auto cut = [&](std::string key) {
    if (key.size() > bytes_max) key.resize(bytes_max);
    return key;
  };
  switch (pattern) {
    case KeyPattern::dense:
    case KeyPattern::hot_leaf: return std::to_string(random.below(1'000'000));
    case KeyPattern::random_bytes: return random_string(random, random.between(1, bytes_max));
    case KeyPattern::ascending: return big_endian(i * 3 + 1, 8);
    case KeyPattern::descending: return big_endian((std::uint64_t{1} << 40) - i * 3, 8);
    case KeyPattern::same_first_8:
      return cut("prefix:8" + random_string(random, random.between(0, 6)));
    case KeyPattern::same_first_16:
      return cut("prefix:16:bytes:" + random_string(random, random.between(0, 6)));
    case KeyPattern::same_first_64:
      return std::string(std::min<std::size_t>(64, bytes_max / 2), 's') +
             two_valued(random, std::min<std::size_t>(16, bytes_max / 2), '\0', 'z');
    case KeyPattern::same_ends: return "samehead" + random_string(random, 3) + "sametail";
    case KeyPattern::nested: {
      // Runs of one letter: each is a prefix of all longer ones of its letter.
      const std::size_t runs = 1 + i / bytes_max;
      return std::string(1 + i % bytes_max, static_cast<char>('a' + runs % 26));
    }
    case KeyPattern::shortest: return std::string(1, static_cast<char>(random.below(256)));
    case KeyPattern::longest: return std::string(bytes_max - 3, 'L') + big_endian(random(), 3);
    case KeyPattern::short_and_long:
      if (i % 2 == 0) return random_string(random, random.between(1, 2));
      return std::string(bytes_max - 2, static_cast<char>(random.below(256))) +
             big_endian(random(), 2);
    case KeyPattern::binary_zeros: return two_valued(random, bytes_max, '\0', '\1');
    case KeyPattern::all_ones: return two_valued(random, bytes_max, '\xFF', '\xFE');
  }
  return {};
}

}  // namespace

std::string_view name(KeyPattern pattern) {
  constexpr std::string_view kPatternNames[] = {
      "dense",         "random_bytes",   "ascending",    "descending", "same_first_8",
      "same_first_16", "same_first_64",  "same_ends",    "nested",     "shortest",
      "longest",       "short_and_long", "binary_zeros", "all_ones",   "hot_leaf"};
  static_assert(std::size(kPatternNames) == std::size(kKeyPatterns));
  return kPatternNames[static_cast<std::size_t>(pattern)];
}

std::vector<std::string> make_keys(KeyPattern pattern, std::size_t count, std::size_t key_bytes_max,
                                   std::uint64_t seed) {
  Random random(seed);
  std::vector<std::string> keys;
  std::unordered_set<std::string> seen;
  // Small patterns run out: after many repeated draws there are no more keys.
  std::size_t in_vain = 0;
  for (std::uint64_t i = 0; keys.size() < count && in_vain < 2000; ++i) {
    std::string key = draw(pattern, i, key_bytes_max, random);
    if (seen.insert(key).second) {
      keys.push_back(std::move(key));
      in_vain = 0;
    } else {
      ++in_vain;
    }
  }
  return keys;
}

}  // namespace espalier::test
