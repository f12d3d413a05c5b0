// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/known_secret.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/temporary_folder.hpp"

namespace espalier::client {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kDigits = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
constexpr const char* kVariable = "ESPALIER_SECRET_FILE";

class KnownSecretTest : public testing::Test {
 protected:
  void TearDown() override { unsetenv(kVariable); }
  std::string write(const std::string& text, mode_t mode = 0600) {
    std::string path = (folder_ / ("s" + std::to_string(++files_))).string();
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  /// The refusal of a file, whose code must be this one.
  std::string refusal(const std::string& path, Code code) {
    const auto read = ClientSecret::read_file(path);
    if (read) return "it is taken";
    EXPECT_EQ(read.error().error.code, code) << message(read.error());
    EXPECT_THAT(message(read.error()), Not(HasSubstr(kDigits.substr(8, 8))));
    return message(read.error());
  }
  const base::TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(KnownSecretTest, IsReadFromAFileWithOneLine) {
  const std::size_t pages = crypto::secret_pages_taken();
  {
    const auto secret = ClientSecret::read_file(write("# me\n\nshop write " + kDigits + " o/*\n"));
    ASSERT_TRUE(secret) << message(secret.error());
    EXPECT_TRUE(secret->has_secret());
    EXPECT_EQ(secret->name(), "shop");
    const ClientSecret copy = *secret;
    EXPECT_EQ(KnownSecret::of(copy), KnownSecret::of(*secret)) << "it is in memory once";
    EXPECT_EQ(KnownSecret::of(copy)->bytes()[31], std::byte{0x1f});
    EXPECT_EQ(crypto::secret_pages_taken(), pages + 1);
  }
  EXPECT_EQ(crypto::secret_pages_taken(), pages) << "it goes with the last copy";
}

TEST_F(KnownSecretTest, AFileThatCannotBeUsedSaysWhy) {
  const std::string line = "shop write " + kDigits + "\n";
  EXPECT_THAT(refusal(write(line, 0640), Code::invalid_argument), HasSubstr("has mode 0640"));
  EXPECT_THAT(refusal((folder_ / "none").string(), Code::system), HasSubstr("No such file"));
  EXPECT_THAT(refusal(folder_.path().string(), Code::invalid_argument), HasSubstr("is no file"));
  EXPECT_THAT(refusal(write(""), Code::invalid_argument), HasSubstr("has no line"));
  EXPECT_THAT(refusal(write("# nothing\n"), Code::invalid_argument), HasSubstr("has no line"));
  EXPECT_THAT(refusal(write(line + "b read " + kDigits + "\n"), Code::invalid_argument),
              HasSubstr("line 2: a client has one name"));
  EXPECT_THAT(refusal(write("shop write " + kDigits.substr(2)), Code::invalid_argument),
              HasSubstr("line 1: behind the role"));
  EXPECT_THAT(refusal(write("shop write " + std::string(64, '0')), Code::invalid_argument),
              HasSubstr("was not drawn"));
  EXPECT_THAT(refusal(write(kDigits), Code::invalid_argument), HasSubstr("line 1: a name has"));
}

TEST_F(KnownSecretTest, IsMadeOfBytesThatWereDrawn) {
  std::array<std::byte, ClientSecret::kBytes> bytes{};
  EXPECT_EQ(ClientSecret::make("shop", bytes).error().error.code, Code::invalid_argument);
  bytes[7] = std::byte{1};
  const auto made = ClientSecret::make("shop", bytes);
  ASSERT_TRUE(made) << message(made.error());
  EXPECT_EQ(made->name(), "shop");
  EXPECT_EQ(KnownSecret::of(*made)->bytes(), bytes);
  for (const std::string_view name : {std::string_view(""), std::string_view("a b"),
                                      std::string_view("a234567890123456789012345678901234")}) {
    EXPECT_EQ(ClientSecret::make(name, bytes).error().error.code, Code::invalid_argument) << name;
  }
  EXPECT_FALSE(ClientSecret().has_secret());
  EXPECT_EQ(ClientSecret().name(), "");
}

TEST_F(KnownSecretTest, TheOneThatIsGivenBeatsThatOfTheProcess) {
  setenv(kVariable, write("other read " + kDigits).c_str(), 1);
  EXPECT_EQ((*KnownSecret::or_of_process(nullptr))->name(), "other");
  const auto own = KnownSecret::read_file(write("own read " + kDigits));
  ASSERT_TRUE(own);
  EXPECT_EQ((*KnownSecret::or_of_process(*own))->name(), "own");
  setenv(kVariable, (folder_ / "none").c_str(), 1);
  EXPECT_TRUE(KnownSecret::or_of_process(*own)) << "what is not needed is not read";
  EXPECT_EQ(KnownSecret::or_of_process(nullptr).error().error, (Error{Code::system, 0, ENOENT}));
  setenv(kVariable, "", 1);
  EXPECT_EQ(KnownSecret::or_of_process(nullptr).value(), nullptr);
}

}  // namespace
}  // namespace espalier::client
