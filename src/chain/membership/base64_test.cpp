// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/base64.hpp"

#include <gtest/gtest.h>

#include <string>

namespace espalier::chain {
namespace {

// The test vectors of RFC 4648.
TEST(Base64, EachLengthOfATailIsWrittenAndReadBack) {
  const char* const pairs[][2] = {{"", ""},
                                  {"f", "Zg=="},
                                  {"fo", "Zm8="},
                                  {"foo", "Zm9v"},
                                  {"foob", "Zm9vYg=="},
                                  {"fooba", "Zm9vYmE="},
                                  {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : pairs) {
    EXPECT_EQ(in_base64(bytes), text);
    EXPECT_EQ(of_base64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(of_base64(in_base64(all)), all);
}

TEST(Base64, OtherLettersAreRefused) {
  for (const char* const bad : {"Zg=a", "Z g", "Zm9v\n", "\xff", "Zm-_"}) {
    EXPECT_EQ(of_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace espalier::chain
