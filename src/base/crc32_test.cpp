// SPDX-License-Identifier: Apache-2.0
#include "base/crc32.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace espalier::base {
namespace {

std::span<const std::byte> bytes_in(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// As the definition has it: bit by bit.
std::uint32_t extend_by_bits(std::uint32_t state, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const std::uint32_t in = (std::to_integer<std::uint32_t>(byte) >> bit) & 1;
      const bool out = ((state ^ in) & 1) != 0;
      state = (state >> 1) ^ (out ? 0xEDB88320u : 0u);
    }
  }
  return state;
}

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  random.fill(bytes);
  return bytes;
}

TEST(Crc32, KnownAnswers) {
  EXPECT_EQ(crc32({}), 0u);
  EXPECT_EQ(crc32(bytes_in("123456789")), 0xCBF43926u);
  EXPECT_EQ(crc32(bytes_in("The quick brown fox jumps over the lazy dog")), 0x414FA339u);
  const std::vector<std::byte> ones(8, std::byte{0xFF});
  EXPECT_EQ(crc32_extend(kCrc32Start, ones), 0xDEBB20E3u);  // where an ICRC begins
}

TEST(Crc32, AllFormsEqualTheBitwiseOneAtAllLengthsAndPlaces) {
  Random random(seed_from_environment(31));
  const auto bytes = random_bytes(random, 700);
  for (std::size_t begin = 0; begin < 17; ++begin) {
    for (std::size_t count = 0; begin + count <= bytes.size(); count += count < 300 ? 1 : 13) {
      const auto piece = std::span(bytes).subspan(begin, count);
      const auto state = static_cast<std::uint32_t>(random());
      const std::uint32_t expected = extend_by_bits(state, piece);
      ASSERT_EQ(crc32_extend(state, piece), expected) << begin << " " << count;
      ASSERT_EQ(crc32_extend_by_table(state, piece), expected) << begin << " " << count;
      if (crc32_can_fold()) {
        ASSERT_EQ(crc32_extend_by_folding(state, piece), expected) << begin << " " << count;
      }
    }
  }
}

TEST(Crc32, PiecesMakeTheWhole) {
  Random random(seed_from_environment(32));
  for (int round = 0; round < 200; ++round) {
    const auto bytes = random_bytes(random, random.below(9000));
    std::uint32_t state = kCrc32Start;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::size_t count = 1 + random.below(bytes.size() - at);
      state = crc32_extend(state, std::span(bytes).subspan(at, count));
      at += count;
    }
    ASSERT_EQ(crc32_end(state), crc32(bytes));
    ASSERT_EQ(state, extend_by_bits(kCrc32Start, bytes));
  }
}

TEST(Crc32, TablesTellWhatAByteDoesFromAfar) {
  Random random(seed_from_environment(33));
  for (unsigned zeros = 0; zeros < 50; ++zeros) {
    std::vector<std::byte> bytes(zeros + 1);
    const auto byte = static_cast<std::uint8_t>(random());
    bytes[0] = std::byte{byte};
    ASSERT_EQ(crc32_table(zeros)[byte], extend_by_bits(0, bytes));
  }
}

}  // namespace
}  // namespace espalier::base
