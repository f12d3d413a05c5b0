// SPDX-License-Identifier: Apache-2.0
#include "tools/options.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(Options, OperandsAreRawUnlessToldOtherwise) {
  EXPECT_EQ(operand_bytes("a\\tb", std::nullopt, "key").value(), "a\\tb");
  EXPECT_EQ(operand_bytes("a\\tb", Encoding::escaped, "key").value(), "a\tb");
  EXPECT_EQ(operand_bytes("6162", Encoding::hex, "key").value(), "ab");
  const auto wrong = operand_bytes("6x", Encoding::hex, "key");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().exit_code, kUsage);
  EXPECT_EQ(wrong.error().what, "key '6x': '6x' at position 1 is not a hex byte");
}

}  // namespace
}  // namespace espalier::tools
