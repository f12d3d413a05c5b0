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

TEST(Numbers, NanosecondsHaveUnits) {
  EXPECT_EQ(format_nanoseconds(0), "0 ns");
  EXPECT_EQ(format_nanoseconds(999), "999 ns");
  EXPECT_EQ(format_nanoseconds(1536), "1.5 us");
  EXPECT_EQ(format_nanoseconds(999'960), "1.0 ms");
  EXPECT_EQ(format_nanoseconds(17'179'869'184), "17.2 s");
}

}  // namespace
}  // namespace espalier::tools
