// SPDX-License-Identifier: Apache-2.0
#include "base/number_text.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace espalier::base {
namespace {

TEST(NumberText, TakesDigitsThatFit) {
  EXPECT_EQ(parse_digits<std::uint16_t>("0"), 0);
  EXPECT_EQ(parse_digits<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_digits<std::uint64_t>("18446744073709551615"), UINT64_MAX);
}

TEST(NumberText, TakesNothingElse) {
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1x", "0x1", "1.0", "65536"}) {
    EXPECT_EQ(parse_digits<std::uint16_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace espalier::base
