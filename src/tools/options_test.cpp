// SPDX-License-Identifier: Apache-2.0
#include "tools/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace espalier::tools {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;

TEST(Options, ProtectedArgumentsComeBack) {
  for (const std::string argument : {"", "[a,b]", "{}", "%%", "plain", "-f", "[", "a]"}) {
    const auto words = protect({argument});
    ASSERT_EQ(words.size(), 1U);
    EXPECT_EQ(unprotect(words[0]), argument);
  }
}

TEST(Options, ValuesBehindAnEqualsSignAreProtectedToo) {
  EXPECT_THAT(protect({"--prefix=", "--prefix={}", "--limit=3"}),
              ElementsAre("--prefix", "\0"s, "--prefix", "{}\0"s, "--limit=3"));
  EXPECT_THAT(protect({"--", "--prefix="}), ElementsAre("--", "--prefix="));
}

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
