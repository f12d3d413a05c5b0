// SPDX-License-Identifier: Apache-2.0
#include "tools/hex_dump.hpp"

#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

TEST(HexDump, ShowsPlaceDigitsAndLetters) {
  EXPECT_EQ(hex_dump("", 7), "");
  EXPECT_EQ(hex_dump("0123456789abcdefhi\n\x1b\xff", 0x10),
            "00000010  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
            "00000020  68 69 0a 1b ff                                    |hi...|\n");
  EXPECT_EQ(hex_dump("a", 0x1'0000'0000),
            "100000000  61                                                |a|\n");
}

}  // namespace
}  // namespace espalier::tools
