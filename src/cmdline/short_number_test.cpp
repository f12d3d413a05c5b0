// SPDX-License-Identifier: Apache-2.0
#include "cmdline/short_number.hpp"

#include <gtest/gtest.h>

namespace espalier::cmdline {
namespace {

TEST(ShortNumber, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(1234), "1.23 k");
  EXPECT_EQ(short_number(1234567), "1.23 M");
  EXPECT_EQ(short_number(12345678), "12.3 M");
  EXPECT_EQ(short_number(123456789), "123 M");
  EXPECT_EQ(short_number(2.5e9), "2.50 G");
}

}  // namespace
}  // namespace espalier::cmdline
