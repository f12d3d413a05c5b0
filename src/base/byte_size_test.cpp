// SPDX-License-Identifier: Apache-2.0
#include "base/byte_size.hpp"

#include <gtest/gtest.h>

namespace espalier::base {
namespace {

TEST(ByteSize, ReadsSizes) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("7B"), 7U);
  EXPECT_EQ(parse_bytes("64k"), 65536U);
  EXPECT_EQ(parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(parse_bytes("2MB"), 2U << 20);
  EXPECT_EQ(parse_bytes("1T"), std::uint64_t{1} << 40);
  for (const char* const wrong : {"", "k", "-1", "1.5G", "1X", "1KX", "1 K", "0x10", "1BB"}) {
    EXPECT_FALSE(parse_bytes(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(parse_bytes("99999999999999999999").error(), "is too large");
  EXPECT_EQ(parse_bytes("99999999999G").error(), "is too large");
}

TEST(ByteSize, WritesThemSoThatTheyComeBack) {
  EXPECT_EQ(exact_bytes(0), "0B");
  EXPECT_EQ(exact_bytes(1000), "1000B");
  EXPECT_EQ(exact_bytes(65536), "64KiB");
  EXPECT_EQ(exact_bytes(std::uint64_t{3} << 30), "3GiB");
  EXPECT_EQ(exact_bytes(std::uint64_t{1} << 63), "8388608TiB");
  for (std::uint64_t bytes = 1; bytes != 0; bytes <<= 1) {
    for (const std::uint64_t near : {bytes - 1, bytes, bytes + 1}) {
      EXPECT_EQ(parse_bytes(exact_bytes(near)), near);
    }
  }
}

}  // namespace
}  // namespace espalier::base
