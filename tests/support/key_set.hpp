// SPDX-License-Identifier: Apache-2.0
// Sets of keys that are difficult for an ordered map, each for a reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::test {

enum class KeyPattern : std::uint8_t {
  dense,           ///< short decimal numbers
  random_bytes,    ///< any bytes, any length up to the longest
  ascending,       ///< big-endian numbers, visited from low to high: every insert at the right end
  descending,      ///< visited from high to low: every insert at the left end
  same_first_8,    ///< equal in their first 8 bytes: fences must be compared beyond their heads
  same_first_16,   ///< equal in their first 16 bytes
  same_first_64,   ///< equal in their first 64 bytes, or in half of the longest that are allowed
  same_ends,       ///< long, and equal in their first and last 8 bytes
  nested,          ///< each one a prefix of the next ones
  shortest,        ///< all keys of one byte: 256 keys
  longest,         ///< as long as allowed, equal but for the last bytes
  short_and_long,  ///< one byte and as long as allowed, in turns: prefixes change from leaf to leaf
  binary_zeros,    ///< made of 0x00 and 0x01 only: a shorter key is the longer one cut at a zero
  all_ones,        ///< made of 0xFF and 0xFE only: above a run of 0xFF sorts only a longer one
  hot_leaf,        ///< half of the visits go to keys that lie beside each other
};

inline constexpr KeyPattern kKeyPatterns[] = {
    KeyPattern::dense,         KeyPattern::random_bytes, KeyPattern::ascending,
    KeyPattern::descending,    KeyPattern::same_first_8, KeyPattern::same_first_16,
    KeyPattern::same_first_64, KeyPattern::same_ends,    KeyPattern::nested,
    KeyPattern::shortest,      KeyPattern::longest,      KeyPattern::short_and_long,
    KeyPattern::binary_zeros,  KeyPattern::all_ones,     KeyPattern::hot_leaf,
};

/// The name of a pattern in the enumeration above.
std::string_view name(KeyPattern pattern);

/// Up to `count` different keys of a pattern (fewer if the pattern has no more), none longer than
/// `key_bytes_max`, in the order in which a test should first use them.
std::vector<std::string> make_keys(KeyPattern pattern, std::size_t count, std::size_t key_bytes_max,
                                   std::uint64_t seed);

}  // namespace espalier::test
