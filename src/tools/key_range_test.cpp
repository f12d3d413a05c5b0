// SPDX-License-Identifier: Apache-2.0
#include "tools/key_range.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(KeyRange, APrefixIsARange) {
  EXPECT_EQ(prefix_range("ab").low, "ab");
  EXPECT_EQ(prefix_range("ab").high, "ac");
  EXPECT_EQ(prefix_range("").high, "");
  EXPECT_EQ(prefix_range("a\xFF\xFF").high, "b");
  EXPECT_EQ(prefix_range("\xFF\xFF").high, "");
  EXPECT_EQ(prefix_range("\x7F").high, "\x80");
  EXPECT_EQ(prefix_range("\xFE\xFF").high, "\xFF");
}

}  // namespace
}  // namespace espalier::tools
