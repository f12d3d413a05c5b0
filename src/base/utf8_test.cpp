// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

#include <gtest/gtest.h>

namespace espalier::base {
namespace {

TEST(Utf8, KnowsWhatIsWellFormed) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("A\xC2\x80\xE0\xA0\x80\xED\x9F\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
  EXPECT_FALSE(is_utf8("\x80"));              // continuation without a lead
  EXPECT_FALSE(is_utf8("\xC1\x81"));          // overlong
  EXPECT_FALSE(is_utf8("\xE0\x9F\xBF"));      // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_utf8("\xF0\x8F\xBF\xBF"));  // overlong
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // above 10FFFF
  EXPECT_FALSE(is_utf8("\xF5\x80\x80\x80"));
  EXPECT_FALSE(is_utf8("\xE2\x82"));  // cut off
}

TEST(Utf8, TellsWhereItEnds) {
  EXPECT_EQ(utf8_prefix_bytes(""), 0U);
  EXPECT_EQ(utf8_prefix_bytes("a\xC3\xBCz"), 4U);
  EXPECT_EQ(utf8_prefix_bytes("a\xC3\xBC\xFFz"), 3U);
  EXPECT_EQ(utf8_prefix_bytes("a\xC3"), 1U);
  EXPECT_EQ(utf8_prefix_bytes("\xBC"), 0U);
}

}  // namespace
}  // namespace espalier::base
