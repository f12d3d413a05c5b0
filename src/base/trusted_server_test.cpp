// SPDX-License-Identifier: Apache-2.0
#include "base/trusted_server.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hpp"

namespace espalier::base {
namespace {

// Users that do not exist on the machine: the rules are asked as if one of them were this process.
constexpr std::uint32_t kOther = 424'242;
constexpr std::uint32_t kThird = 434'343;

class TrustedServer : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_ / "in"); }
  [[nodiscard]] std::filesystem::path at(std::string_view name) const { return folder_ / name; }
  void make_file(std::string_view name) {
    std::ofstream(at(name)) << "stands for a socket";
    ASSERT_TRUE(std::filesystem::exists(at(name)));
  }
  void let_all_write(std::string_view name, mode_t beside = 0) {
    ASSERT_EQ(::chmod(at(name).c_str(), 0777 | beside), 0);
  }
  /// Whether this process's user would take `server` for the one that was meant.
  [[nodiscard]] bool trusts(std::uint32_t server, const std::filesystem::path& path) const {
    return is_trusted_server(server, path.string(), {}, {::geteuid()});
  }

  TemporaryFolder folder_;
};

TEST_F(TrustedServer, RunsAsTheOwnUserOrRootOrTheOneThatIsExpected) {
  const KnownUsers known{1000};
  EXPECT_TRUE(is_trusted_server(1000, "/nowhere/s", {}, known));
  EXPECT_TRUE(is_trusted_server(0, "/nowhere/s", {}, known));
  EXPECT_FALSE(is_trusted_server(1001, "/nowhere/s", {}, known));
  EXPECT_TRUE(is_trusted_server(1001, "/nowhere/s", 1001, known));
  EXPECT_FALSE(is_trusted_server(1002, "/nowhere/s", 1001, known));
}

TEST_F(TrustedServer, IsPutThereByWhoeverAloneMayWriteTheFolder) {
  make_file("in/s");
  EXPECT_TRUE(trusts(kOther, at("in/s")));
  let_all_write("in");
  EXPECT_FALSE(trusts(kOther, at("in/s")));
  ASSERT_EQ(::chmod(at("in").c_str(), 0775), 0);
  EXPECT_FALSE(trusts(kOther, at("in/s"))) << "its group may put another there";
}

TEST_F(TrustedServer, EachFolderOnTheWayCounts) {
  std::filesystem::create_directory(at("in/deep"));
  make_file("in/deep/s");
  EXPECT_TRUE(trusts(kOther, at("in/deep/s")));
  let_all_write("in");
  EXPECT_FALSE(trusts(kOther, at("in/deep/s"))) << "all may move the folder away";
  let_all_write("in", S_ISVTX);
  EXPECT_TRUE(trusts(kOther, at("in/deep/s"))) << "only its owner, who is asked for";
  EXPECT_FALSE(trusts(kOther, at("in/none/s")));
}

// As in /tmp: the first user to make the entry owns it.
TEST_F(TrustedServer, IsNotTrustedForAnEntryOfItsOwnThatAllCouldHaveMade) {
  make_file("in/s");
  let_all_write("in", S_ISVTX);
  const KnownUsers third{kThird};
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(at("in/s").c_str(), kOther, kOther), 0);
    EXPECT_FALSE(trusts(kOther, at("in/s")));
  } else {
    EXPECT_FALSE(is_trusted_server(::geteuid(), at("in/s").string(), {}, third));
  }
}

TEST_F(TrustedServer, LinksAreFollowedAsTheKernelDoes) {
  make_file("in/s");
  std::filesystem::create_directories(at("open/deep"));
  make_file("open/deep/s");
  std::filesystem::create_symlink("../in/s", at("open/s"));
  std::filesystem::create_symlink("open/deep", at("way"));
  EXPECT_TRUE(trusts(kOther, at("open/s")));
  EXPECT_TRUE(trusts(kOther, at("way/s")));
  let_all_write("open");
  EXPECT_FALSE(trusts(kOther, at("open/s"))) << "all may replace the link";
  EXPECT_FALSE(trusts(kOther, at("way/s"))) << "the link leads through it";
  std::filesystem::create_symlink("round", at("round"));
  EXPECT_FALSE(trusts(kOther, at("round")));
}

TEST_F(TrustedServer, UsersThatAreNotMappedAreNotToldApart) {
  make_file("in/s");
  const KnownUsers known{::geteuid(), 65534};
  const std::string path = at("in/s").string();
  EXPECT_FALSE(is_trusted_server(65534, path, {}, known));
  EXPECT_TRUE(is_trusted_server(65534, path, 65534, known)) << "where that is wanted";
  EXPECT_TRUE(is_trusted_server(kOther, path, {}, known));
}

TEST_F(TrustedServer, ItsUserIsAskedOfTheSystem) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  EXPECT_TRUE(check_server(ends[0], "/nowhere/s", {}));
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(check_server(-1, "/nowhere/s", {}).error(), (Error{Code::not_permitted, 0, 0}));
}

}  // namespace
}  // namespace espalier::base
