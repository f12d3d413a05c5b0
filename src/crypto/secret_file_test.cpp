// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"

namespace espalier::crypto {
namespace {

using testing::HasSubstr;

class SecretFile : public testing::Test {
 protected:
  std::string write(const std::string& text, mode_t mode = 0600) {
    std::string path = (folder_ / "file").string();
    remove(path.c_str());
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static std::vector<std::string> lines(const std::string& path) {
    std::vector<std::string> read;
    const auto done =
        read_secret_lines(path, "file", [&](std::uint32_t number, std::string_view line) {
          EXPECT_EQ(number, read.size() + 1);
          read.emplace_back(line);
          return true;
        });
    EXPECT_TRUE(done) << done.error().words;
    return read;
  }

  const base::TemporaryFolder folder_;
};

TEST_F(SecretFile, IsReadWholeOrByLines) {
  EXPECT_EQ((*read_secret_file(write("a\nb"), "file"))->view(), "a\nb");
  EXPECT_EQ((*read_secret_file(write(""), "file"))->view(), "");
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines(write("")), Lines{});
  EXPECT_EQ(lines(write("a\n\nb\n")), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines(write("a\nb")), (Lines{"a", "b"}));
  EXPECT_EQ(lines(write(std::string("a\0b\n", 4))), Lines{std::string("a\0b", 3)});
}

TEST_F(SecretFile, OfManyPagesIsReadByLines) {
  std::vector<std::string> written;
  std::string text;
  for (std::size_t i = 0; i < 500; ++i) {
    written.push_back(std::string(i * 37 % 1000, static_cast<char>('a' + i % 26)));
    text += written.back() + "\n";
  }
  EXPECT_EQ(lines(write(text)), written);
  const std::size_t most = SecretText::kBytesMax - 1;
  EXPECT_EQ(lines(write(std::string(most, 'x') + "\ny\n")),
            (std::vector<std::string>{std::string(most, 'x'), "y"}));
  const auto longer = read_secret_lines(write("a\n" + std::string(most + 1, 'x') + "\n"), "file",
                                        [](std::uint32_t, std::string_view) { return true; });
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().words, HasSubstr("longer than a page: line 2"));
}

TEST_F(SecretFile, IsReadAsFarAsItIsWanted) {
  int lines = 0;
  EXPECT_TRUE(read_secret_lines(write("a\nb\nc\n"), "file",
                                [&](std::uint32_t, std::string_view) { return ++lines < 2; }));
  EXPECT_EQ(lines, 2);
}

TEST_F(SecretFile, IsForItsOwnerAlone) {
  const auto words = [](const std::string& path) {
    const auto read = read_secret_file(path, "secrets file");
    return read ? std::string("read") : read.error().words;
  };
  EXPECT_EQ(words(write("a", 0600)), "read");
  EXPECT_EQ(words(write("a", 0400)), "read");
  EXPECT_THAT(words(write("a", 0640)), HasSubstr("the secrets file "));
  EXPECT_THAT(words(write("a", 0640)), HasSubstr("has mode 0640, and others may read it"));
  EXPECT_THAT(words(write("a", 0601)), HasSubstr("has mode 0601"));
  EXPECT_THAT(words(folder_.path().string()), HasSubstr("is no file"));
  EXPECT_THAT(words((folder_ / "none").string()), HasSubstr("No such file"));
  EXPECT_THAT(words(write(std::string(5000, 'x'))), HasSubstr("longer than a page"));
  const auto none = read_secret_file((folder_ / "none").string(), "file");
  EXPECT_EQ(none.error().error, (Error{Code::system, 0, ENOENT}));
}

TEST_F(SecretFile, LeavesNothingBehind) {
  const std::size_t before = secret_pages_taken();
  static_cast<void>(lines(write("a\nb\n")));
  static_cast<void>(read_secret_file(write("a"), "file"));
  EXPECT_EQ(secret_pages_taken(), before);
}

}  // namespace
}  // namespace espalier::crypto
