// SPDX-License-Identifier: Apache-2.0
#include "cmdline/text_codec.hpp"

#include <gtest/gtest.h>

namespace espalier::cmdline {
namespace {

using namespace std::string_literals;

std::string all_bytes() {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  return bytes;
}

TEST(TextCodec, EveryByteComesBackInEveryEncoding) {
  for (const Encoding encoding : {Encoding::raw, Encoding::hex, Encoding::escaped, Encoding::tsv}) {
    EXPECT_EQ(decode(encode(all_bytes(), encoding), encoding), all_bytes());
    EXPECT_EQ(decode(encode("", encoding), encoding), "");
  }
}

TEST(TextCodec, EveryPairOfBytesComesBackEscaped) {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string pair{static_cast<char>(a), static_cast<char>(b)};
      ASSERT_EQ(decode(encode(pair, Encoding::escaped), Encoding::escaped), pair);
    }
  }
}

TEST(TextCodec, EscapedKeepsReadableTextAndNothingThatSteersATerminal) {
  EXPECT_EQ(encode("na\xC3\xAFve caf\xC3\xA9", Encoding::escaped), "na\xC3\xAFve caf\xC3\xA9");
  EXPECT_EQ(encode("\x1b[31m", Encoding::escaped), "\\x1b[31m");
  EXPECT_EQ(encode("a\tb\nc\rd\\e\0"s, Encoding::escaped), "a\\tb\\nc\\rd\\\\e\\x00");
  EXPECT_EQ(encode("\x7f", Encoding::escaped), "\\x7f");
  EXPECT_EQ(encode("\xC2\x9B", Encoding::escaped), "\\xc2\\x9b");           // C1: CSI
  EXPECT_EQ(encode("\xE2\x80\xAE", Encoding::escaped), "\\xe2\\x80\\xae");  // right to left
  EXPECT_EQ(encode("\xFF\xFE", Encoding::escaped), "\\xff\\xfe");
}

TEST(TextCodec, TsvEscapesOnlyWhatAFieldCannotHold) {
  EXPECT_EQ(encode("a\tb\n\r\\\x1b\xFF"s, Encoding::tsv), "a\\tb\\n\\r\\\\\x1b\xFF");
}

TEST(TextCodec, HexReadsBothCasesAndRefusesTheRest) {
  EXPECT_EQ(decode("00fFA9", Encoding::hex), "\x00\xFF\xA9"s);
  EXPECT_EQ(decode("abc", Encoding::hex).error(),
            "hex text has 3 digits; two are needed for each byte");
  EXPECT_EQ(decode("00zz", Encoding::hex).error(), "'zz' at position 3 is not a hex byte");
}

TEST(TextCodec, AnUnknownEscapeIsAnErrorWithItsPlace) {
  EXPECT_EQ(decode("C:\\dir", Encoding::escaped).error(),
            "'\\\\d' at position 3 is no escape; write \\\\ for a backslash");
  EXPECT_FALSE(decode("end\\", Encoding::escaped).has_value());
  EXPECT_EQ(decode("\\x4", Encoding::escaped).error(), "\\x at position 1 needs two hex digits");
  EXPECT_FALSE(decode("\\x4g", Encoding::tsv).has_value());
  EXPECT_EQ(decode("\\x41\\x7A", Encoding::tsv), "Az");
}

}  // namespace
}  // namespace espalier::cmdline
