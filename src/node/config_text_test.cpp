// SPDX-License-Identifier: Apache-2.0
#include "node/config_text.hpp"

#include <gtest/gtest.h>

namespace espalier::node {
namespace {

TEST(ConfigText, WhatIsShownCanBeShown) {
  EXPECT_EQ(printable("k\u00e4se \""), "k\u00e4se \"");
  EXPECT_EQ(printable("a\x1b[1m\n"), "a\\x1b[1m\\x0a");
  EXPECT_EQ(printable("\u00e4\xff"), "\\xc3\\xa4\\xff");
  EXPECT_EQ(node::in_short_quotes("abc"), "'abc'");
  EXPECT_EQ(node::in_short_quotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
  EXPECT_EQ(node::in_short_quotes(std::string(59, 'x') + "\u20ac" + "yyyy"),
            "'" + std::string(59, 'x') + "...'");
}

}  // namespace
}  // namespace espalier::node
