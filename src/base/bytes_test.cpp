// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace espalier::base {
namespace {

TEST(Bytes, LoadsAndStoresInBothOrdersAtAnyAddress) {
  std::array<unsigned char, 16> bytes{};
  for (std::size_t at = 0; at < 8; ++at) {
    store_be<std::uint64_t>(&bytes[at], 0x0102030405060708);
    EXPECT_EQ(bytes[at], 1);
    EXPECT_EQ(bytes[at + 7], 8);
    EXPECT_EQ(load_be<std::uint64_t>(&bytes[at]), 0x0102030405060708u);
    EXPECT_EQ(load_le<std::uint64_t>(&bytes[at]), 0x0807060504030201u);
    store_le<std::uint32_t>(&bytes[at], 0xa1b2c3d4);
    EXPECT_EQ(bytes[at], 0xd4);
    EXPECT_EQ(load_le<std::uint32_t>(&bytes[at]), 0xa1b2c3d4u);
    EXPECT_EQ(load_be<std::uint32_t>(&bytes[at]), 0xd4c3b2a1u);
    store_be<std::uint16_t>(&bytes[at], 0xbeef);
    EXPECT_EQ(load_be<std::uint16_t>(&bytes[at]), 0xbeef);
    EXPECT_EQ(load_le<std::uint16_t>(&bytes[at]), 0xefbe);
    store_le<std::uint8_t>(&bytes[at], 7);
    EXPECT_EQ(load_be<std::uint8_t>(&bytes[at]), 7);
  }
}

TEST(Bytes, PrefixOfKnownTexts) {
  EXPECT_EQ(load_be64_prefix(""), 0u);
  EXPECT_EQ(load_be64_prefix("a"), 0x6100000000000000u);
  EXPECT_EQ(load_be64_prefix("abc"), 0x6162630000000000u);
  EXPECT_EQ(load_be64_prefix("abcdefgh"), 0x6162636465666768u);
  EXPECT_EQ(load_be64_prefix("abcdefghi"), 0x6162636465666768u);
  EXPECT_EQ(load_be64_prefix(std::string_view("\xff\0\xff", 3)), 0xff00ff0000000000u);
}

// Each text lies in an allocation of exactly its size, so that a sanitizer sees a byte too far.
TEST(Bytes, PrefixOfEveryLengthReadsNothingElse) {
  Random random(seed_from_environment(1));
  for (std::size_t size = 0; size <= 12; ++size) {
    const auto bytes = std::make_unique<char[]>(size);
    random.fill({reinterpret_cast<std::byte*>(bytes.get()), size});
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      expected = expected << 8 | (i < size ? static_cast<unsigned char>(bytes[i]) : 0u);
    }
    EXPECT_EQ(load_be64_prefix({bytes.get(), size}), expected) << size;
  }
}

/// Short texts over few bytes, so that equal beginnings, zeros and high bytes all occur.
std::string random_text(Random& random) {
  static constexpr std::string_view kAlphabet("\0\x01\x7f\x80\xff", 5);
  std::string text(random.below(20), '\0');
  for (char& c : text) c = kAlphabet[random.below(kAlphabet.size())];
  return text;
}

int sign(int value) { return (value > 0) - (value < 0); }

TEST(Bytes, ComparePrefixAndCommonPrefixAgreeWithTheObviousForms) {
  Random random(seed_from_environment(2));
  for (int round = 0; round < 20000; ++round) {
    const std::string a = random_text(random);
    const std::string b = random.below(4) == 0 ? a : random_text(random);
    const int expected = std::vector<unsigned char>(a.begin(), a.end()) <=>
                                 std::vector<unsigned char>(b.begin(), b.end()) < 0
                             ? -1
                             : a != b;
    ASSERT_EQ(sign(compare(a, b)), expected);
    ASSERT_EQ(sign(compare(b, a)), -expected);
    const std::uint64_t prefix_a = load_be64_prefix(a);
    const std::uint64_t prefix_b = load_be64_prefix(b);
    ASSERT_TRUE(prefix_a >= prefix_b || compare(a, b) < 0);
    ASSERT_TRUE(compare(a, b) >= 0 || prefix_a <= prefix_b);
    std::size_t agree = 0;
    while (agree < std::min(a.size(), b.size()) && a[agree] == b[agree]) ++agree;
    ASSERT_EQ(common_prefix_bytes(a, b), agree);
  }
}

TEST(Bytes, CommonPrefixFindsADifferenceAtEachPlace) {
  const std::string base(40, 'x');
  for (std::size_t at = 0; at < base.size(); ++at) {
    std::string other = base;
    other[at] = 'y';
    EXPECT_EQ(common_prefix_bytes(base, other), at);
    EXPECT_EQ(common_prefix_bytes(base, base.substr(0, at)), at);
  }
}

TEST(Bytes, EmptyViewsWithoutMemoryAreFine) {
  const std::string_view nothing;
  EXPECT_EQ(compare(nothing, nothing), 0);
  EXPECT_LT(compare(nothing, "a"), 0);
  EXPECT_GT(compare("a", nothing), 0);
  EXPECT_EQ(common_prefix_bytes(nothing, "a"), 0u);
  EXPECT_EQ(load_be64_prefix(nothing), 0u);
}

TEST(Bytes, ObjectsAreTheirBytes) {
  const std::uint32_t number = 0x64636261;
  EXPECT_EQ(bytes_of(number), "abcd");
  EXPECT_EQ(bytes_of(number).data(), reinterpret_cast<const char*>(&number));
}

TEST(Bytes, JoinsPartsOfAnyLength) {
  const std::vector<std::byte> whole = joined("ab", {"", "c", {}, "def"});
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(whole.data()), whole.size()), "abcdef");
  EXPECT_TRUE(joined({}, {}).empty());
}

TEST(Bytes, Rounds) {
  EXPECT_EQ(round_up(0u, 8), 0u);
  EXPECT_EQ(round_up(1u, 8), 8u);
  EXPECT_EQ(round_up(8u, 8), 8u);
  EXPECT_EQ(round_down(15u, 8), 8u);
  EXPECT_EQ(round_up(std::uint16_t{65533}, 1), 65533);
  EXPECT_EQ(divide_up(0u, 3), 0u);
  EXPECT_EQ(divide_up(7u, 3), 3u);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(divide_up(kMost, 2), std::uint64_t{1} << 63);
  static_assert(round_up(std::size_t{4097}, 4096) == 8192);
}

TEST(BytesDeathTest, RoundingRefusesOtherUnitsAndOverflow) {
  EXPECT_DEATH(static_cast<void>(round_up(1u, 3)), "assertion failed");
  EXPECT_DEATH(static_cast<void>(round_up(0xffffffffu, 8)), "assertion failed");
}

}  // namespace
}  // namespace espalier::base
