// SPDX-License-Identifier: Apache-2.0
#include "tools/numbers.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(Numbers, CountsHaveSeparators) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(~std::uint64_t{0}), "18,446,744,073,709,551,615");
}

TEST(Numbers, SizesHaveUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(123'456'789), "117.7 MiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16.0 EiB");
}

TEST(Numbers, DurationsAreClockLike) {
  EXPECT_EQ(format_duration(0.4), "0:00");
  EXPECT_EQ(format_duration(83.2), "1:23");
  EXPECT_EQ(format_duration(3725), "1:02:05");
  EXPECT_EQ(format_duration(1e300), format_duration(1e9));
}

TEST(Numbers, ReadsSizes) {
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

}  // namespace
}  // namespace espalier::tools
