// SPDX-License-Identifier: Apache-2.0
#include "base/private_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hpp"

namespace espalier::base {
namespace {

const Error kNotOurs{Code::not_permitted, 0, 0};

TEST(PrivateFolder, IsMadeOrFound) {
  const TemporaryFolder folder;
  const std::string path = folder / "own";
  ASSERT_TRUE(make_private_folder(path));
  struct stat made{};
  ASSERT_EQ(::stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & ALLPERMS, mode_t{0700});
  EXPECT_TRUE(make_private_folder(path)) << "it is there by now";
  EXPECT_EQ(make_private_folder(folder / "none/own").error(), (Error{Code::system, 0, ENOENT}));
}

TEST(PrivateFolder, WhatOthersMayUseOrHaveMadeIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "own";
  ASSERT_TRUE(make_private_folder(path));
  for (const mode_t mode : {0755u, 0770u, 01700u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    EXPECT_EQ(make_private_folder(path).error(), kNotOurs) << mode;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  std::filesystem::create_directory_symlink("own", folder / "link");
  EXPECT_EQ(make_private_folder(folder / "link").error(), kNotOurs);
  std::ofstream(folder / "file") << "text";
  EXPECT_EQ(make_private_folder(folder / "file").error(), kNotOurs);
  // Of another user: as root one is made; else that of root is there.
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 424'242, 424'242), 0);
    EXPECT_EQ(make_private_folder(path).error(), kNotOurs);
  } else {
    EXPECT_EQ(make_private_folder("/").error(), kNotOurs);
  }
}

}  // namespace
}  // namespace espalier::base
