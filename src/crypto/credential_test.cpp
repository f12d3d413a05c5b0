// SPDX-License-Identifier: Apache-2.0
#include "crypto/credential.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/random.hpp"
#include "crypto/hex.hpp"

namespace espalier::crypto {
namespace {

using testing::HasSubstr;

const std::string kDigits = "00112233445566778899aabbccddeeff0123456789ABCDEFfedcba9876543210";

TEST(Credential, IsReadFromALine) {
  SecretBytes secret{};
  const auto read = parse_credential("  shop\twrite " + kDigits + "  orders/* \r", secret);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(**read, (Credential{"shop", Role::write, "orders/"}));
  EXPECT_EQ(secret[1], std::byte{0x11});
  EXPECT_EQ(secret[31], std::byte{0x10});
  const auto all = parse_credential("a.b-c_9 admin " + kDigits, secret);
  ASSERT_TRUE(all && *all);
  EXPECT_EQ(**all, (Credential{"a.b-c_9", Role::admin, ""}));
  EXPECT_EQ((**parse_credential("x read " + kDigits + " *", secret)).prefix, "");
}

TEST(Credential, MayBeBlankOrAComment) {
  SecretBytes secret{};
  for (const std::string_view line : {"", "   ", "\t\r", "# shop write 00", "#"}) {
    secret.fill(std::byte{1});
    const auto read = parse_credential(line, secret);
    ASSERT_TRUE(read) << line;
    EXPECT_FALSE(*read) << line;
    EXPECT_EQ(secret, SecretBytes{});
  }
}

TEST(Credential, SaysWhatIsWrongAndNothingOfTheSecret) {
  const auto fault = [](const std::string& line) {
    SecretBytes secret;
    secret.fill(std::byte{1});
    const auto read = parse_credential(line, secret);
    EXPECT_FALSE(read) << line;
    EXPECT_EQ(secret, SecretBytes{}) << line;
    const std::string words = read ? "" : read.error();
    EXPECT_EQ(words.find(kDigits.substr(0, 8)), std::string::npos) << words;
    return words;
  };
  EXPECT_THAT(fault("shop"), HasSubstr("a role: read, write, admin, peer or replica"));
  EXPECT_THAT(fault("shop Admin " + kDigits), HasSubstr("a role"));
  EXPECT_THAT(fault("sh/op admin " + kDigits), HasSubstr("a name has"));
  EXPECT_THAT(fault(std::string(33, 'a') + " admin " + kDigits), HasSubstr("a name has"));
  EXPECT_THAT(fault("shop admin"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(fault("shop admin " + kDigits.substr(1)), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(fault("shop admin " + kDigits + "0"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(fault("shop admin g" + kDigits.substr(1)), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(fault("shop admin " + std::string(64, '0')), HasSubstr("was not drawn"));
  EXPECT_THAT(fault("shop admin " + kDigits + " orders/"), HasSubstr("and a star"));
  EXPECT_THAT(fault("shop admin " + kDigits + " " + std::string(256, 'a') + "*"),
              HasSubstr("and a star"));
  EXPECT_THAT(fault("shop admin " + kDigits + " a* b*"), HasSubstr("there is more than"));
}

TEST(Credential, IsReadAsItWasWritten) {
  base::Random random(base::seed_from_environment(1));
  for (int i = 0; i < 1000; ++i) {
    Credential made{"n" + std::to_string(random.below(1000)),
                    static_cast<Role>(1 + random.below(3)),
                    random.below(2) == 0 ? "" : "p" + std::to_string(random.below(1000)) + "/"};
    SecretBytes secret;
    for (std::byte& byte : secret) byte = static_cast<std::byte>(random.below(256));
    std::string line;
    write_credential(made, secret, line);
    SecretBytes again{};
    const auto read = parse_credential(line, again);
    ASSERT_TRUE(read && *read) << line;
    EXPECT_EQ(**read, made);
    EXPECT_EQ(again, secret);
  }
}

}  // namespace
}  // namespace espalier::crypto
