// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <string>

#include "base/temporary_folder.hpp"
#include "crypto/credential.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using testing::HasSubstr;

class SecretCommand : public testing::Test {
 protected:
  std::string path(const std::string& name) { return (folder_ / name).string(); }
  std::string text_of(const std::string& name) {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  base::TemporaryFolder folder_;
  Tool tool_;
};

TEST_F(SecretCommand, WritesALineForItsOwnerAlone) {
  ASSERT_EQ(tool_.run({"secret", "new", "shop", "--role", "write", "--names", "orders/*", "--file",
                       path("s")}),
            kOk)
      << tool_.err();
  const std::string line = text_of("s");
  ASSERT_TRUE(line.ends_with(" orders/*\n"));
  crypto::SecretBytes secret{};
  const auto read =
      crypto::parse_credential(std::string_view(line).substr(0, line.size() - 1), secret);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(**read, (crypto::Credential{"shop", crypto::Role::write, "orders/"}));
  struct stat info {};
  ASSERT_EQ(::stat(path("s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_THAT(tool_.out(), HasSubstr("ESPALIER_SECRET_FILE=" + path("s")));
  // What it says has nothing of the secret.
  EXPECT_EQ(tool_.out().find(line.substr(11, 16)), std::string::npos);
}

TEST_F(SecretCommand, DrawsAnotherEachTimeAndOverwritesNone) {
  std::set<std::string> seen;
  for (const char* const name : {"a", "b", "c"}) {
    ASSERT_EQ(tool_.run({"secret", "new", "x", "--role", "read", "--file", path(name)}), kOk);
    EXPECT_TRUE(seen.insert(text_of(name)).second);
  }
  const std::string before = text_of("a");
  EXPECT_EQ(tool_.run({"secret", "new", "x", "--role", "read", "--file", path("a")}), kFailed);
  EXPECT_THAT(tool_.err(), HasSubstr("left as it is"));
  EXPECT_EQ(text_of("a"), before);
}

TEST_F(SecretCommand, RefusesWhatCanBeNoLine) {
  const auto refused = [&](const std::string& name, const std::string& role,
                           const std::string& names) {
    EXPECT_EQ(
        tool_.run({"secret", "new", name, "--role", role, "--names", names, "--file", path("s")}),
        kUsage);
    EXPECT_NE(::access(path("s").c_str(), F_OK), 0);
    return tool_.err();
  };
  EXPECT_THAT(refused("a b", "read", "x*"), HasSubstr("cannot be a name"));
  EXPECT_THAT(refused("a", "root", "x*"),
              HasSubstr("Roles are read, write, admin, peer and replica"));
  EXPECT_THAT(refused("a", "read", "x"), HasSubstr("and a star"));
  EXPECT_THAT(refused("a", "read", "x y*"), HasSubstr("and a star"));
}

}  // namespace
}  // namespace espalier::tools
