// SPDX-License-Identifier: Apache-2.0
#include "tools/os_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temporary_folder.hpp"

namespace espalier::tools {
namespace {

namespace fs = std::filesystem;

/// A folder that goes away with the test.
class OsFilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
  static std::string content(const std::string& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }
  static void write(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }
  /// Replaces a file's content, or returns the errno.
  int replace(const std::string& name, std::string_view bytes) {
    auto writer = files_.replace(path(name));
    if (!writer) return static_cast<int>(writer.error().detail);
    if (auto done = (*writer)->write(bytes); !done) return static_cast<int>(done.error().detail);
    if (auto done = (*writer)->commit(); !done) return static_cast<int>(done.error().detail);
    return 0;
  }

  base::TemporaryFolder folder_;
  OsFiles files_;
};

TEST_F(OsFilesTest, ReadsAFile) {
  write(path("a"), "hello");
  auto source = files_.open(path("a"));
  ASSERT_TRUE(source);
  char buffer[3];
  EXPECT_EQ((*source)->read(buffer), 3U);
  EXPECT_EQ((*source)->read(buffer), 2U);
  EXPECT_EQ((*source)->read(buffer), 0U);
}

TEST_F(OsFilesTest, SaysWhyAFileCannotBeOpened) {
  EXPECT_EQ(files_.open(path("none")).error(), (Error{Code::system, 0, ENOENT}));
  EXPECT_EQ(files_.open(folder_.string()).error(), (Error{Code::system, 0, EISDIR}));
  EXPECT_EQ(files_.replace(folder_.string()).error(), (Error{Code::system, 0, EISDIR}));
  EXPECT_EQ(files_.replace(path("no/such")).error(), (Error{Code::system, 0, ENOENT}));
}

TEST_F(OsFilesTest, ReplacesAllAtOnceAndLeavesNothingBehind) {
  write(path("a"), "old");
  {
    auto writer = files_.replace(path("a"));
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->write("half"));
    EXPECT_EQ(content(path("a")), "old");
  }
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(file_count(), 1U);
  EXPECT_EQ(replace("a", "new"), 0);
  EXPECT_EQ(content(path("a")), "new");
  EXPECT_EQ(file_count(), 1U);
  EXPECT_EQ(replace("fresh", "f"), 0);
  EXPECT_EQ(content(path("fresh")), "f");
}

TEST_F(OsFilesTest, KeepsPermissions) {
  write(path("a"), "old");
  ASSERT_EQ(::chmod(path("a").c_str(), 0640), 0);
  EXPECT_EQ(replace("a", "new"), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(OsFilesTest, ReplacesTheTargetOfALink) {
  write(path("target"), "old");
  fs::create_symlink("target", folder_ / "link");
  EXPECT_EQ(replace("link", "new"), 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(path("target")), "new");
}

TEST_F(OsFilesTest, WritesInPlaceWhatIsNoRegularFile) {
  auto writer = files_.replace("/dev/null");
  ASSERT_TRUE(writer);
  EXPECT_TRUE((*writer)->write("gone"));
  EXPECT_TRUE((*writer)->commit());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OsFilesTest, TheStampChangesWithTheFile) {
  EXPECT_FALSE(files_.info(path("a"))->exists);
  EXPECT_EQ(files_.info(path("a"))->stamp, "");
  write(path("a"), "one");
  const auto first = files_.info(path("a"));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size_bytes, 3U);
  EXPECT_EQ(files_.info(path("a"))->stamp, first->stamp);
  EXPECT_EQ(replace("a", "two"), 0);
  EXPECT_NE(files_.info(path("a"))->stamp, first->stamp);
  EXPECT_EQ(files_.info("/dev/null")->size_bytes, std::nullopt);
}

}  // namespace
}  // namespace espalier::tools
