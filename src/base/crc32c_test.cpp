// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace espalier::base {
namespace {

std::uint32_t checksum_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

// RFC 3720, B.4, and the usual one.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(checksum_of("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
}

TEST(Crc32c, BothFormsAgreeAtAllLengthsAndPlaces) {
  if (!crc32c_has_instruction()) return;  // ESPALIER_ISA=scalar: there is one form
  Random random(seed_from_environment(41));
  std::vector<std::byte> bytes(300);
  random.fill(bytes);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t count = 0; begin + count <= bytes.size(); ++count) {
      const auto piece = std::span(bytes).subspan(begin, count);
      const auto state = static_cast<std::uint32_t>(random());
      ASSERT_EQ(crc32c_extend_by_instruction(state, piece), crc32c_extend_by_table(state, piece))
          << begin << " " << count;
    }
  }
}

TEST(Crc32c, PiecesMakeTheWhole) {
  Random random(seed_from_environment(42));
  std::vector<std::byte> bytes(5000);
  random.fill(bytes);
  for (int round = 0; round < 100; ++round) {
    const auto cut = static_cast<std::size_t>(random.below(bytes.size()));
    const std::span<const std::byte> all(bytes);
    const std::uint32_t first = crc32c_extend(kCrc32cStart, all.first(cut));
    ASSERT_EQ(crc32c_end(crc32c_extend(first, all.subspan(cut))), crc32c(all));
  }
}

}  // namespace
}  // namespace espalier::base
