// SPDX-License-Identifier: Apache-2.0
#include "log/mapped_folder.hpp"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/temporary_folder.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

constexpr const char* kMemory = "/dev/shm";

bool is_tmpfs(const std::string& path) {
  struct statfs facts{};
  return ::statfs(path.c_str(), &facts) == 0 && facts.f_type == TMPFS_MAGIC;
}

class MappedFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_tmpfs(kMemory)) GTEST_SKIP() << "there is no tmpfs at " << kMemory;
    place_.emplace(kMemory);
    auto folder = MappedFolder::at(place_->string());
    ASSERT_TRUE(folder) << message(folder.error());
    folder_ = std::move(*folder);
  }
  /// Units of one byte.
  static void write(LogFile& file, std::uint64_t unit, std::size_t units, std::byte value) {
    UnitBuffer bytes;
    bytes.reserve(units * kUnitBytes);
    std::ranges::fill(bytes.bytes(), value);
    EXPECT_EQ(file.write(unit * kUnitBytes, bytes.bytes()), units * kUnitBytes);
  }
  static void expect_units(LogFile& file, const std::string& values) {
    UnitBuffer bytes;
    bytes.reserve(values.size() * kUnitBytes);
    ASSERT_EQ(file.read(0, bytes.bytes()), values.size() * kUnitBytes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_TRUE(std::ranges::all_of(bytes.bytes().subspan(i * kUnitBytes, kUnitBytes),
                                      [&](std::byte each) { return each == std::byte(values[i]); }))
          << "unit " << i;
    }
  }

  std::optional<base::TemporaryFolder> place_;
  std::unique_ptr<MappedFolder> folder_;
};

TEST_F(MappedFolderTest, WhatIsWrittenIsReadByAnyWay) {
  EXPECT_TRUE(folder_->is_model());
  const std::string empty(1, '\0');
  {
    const auto file = folder_->create("file");
    ASSERT_TRUE(file) << message(file.error());
    ASSERT_TRUE((*file)->fill(4 * kUnitBytes));
    EXPECT_TRUE((*file)->takes_several());
    write(**file, 1, 1, std::byte{'a'});
    write(**file, 3, 1, std::byte{'b'});
    EXPECT_EQ(folder_->stored_bytes(), 2 * kUnitBytes);
    expect_units(**file, empty + 'a' + empty + 'b');
    ASSERT_TRUE(folder_->rename("file", "other"));
    write(**file, 2, 1, std::byte{'c'});  // it is the same file
    ASSERT_TRUE((*file)->sync());
  }
  PosixFolder plainly(place_->string());
  const auto again = plainly.open("other");
  ASSERT_TRUE(again);
  expect_units(**again, empty + "acb");
  const auto mapped = folder_->open("other");
  ASSERT_TRUE(mapped);
  write(**mapped, 0, 2, std::byte{'d'});
  expect_units(**again, "ddcb");
  EXPECT_EQ(folder_->open("file").error(), (Error{Code::system, 0, ENOENT}));
}

// A checkpoint is such a file: what of it is not mapped the kernel writes.
TEST_F(MappedFolderTest, WhatIsExtendedCanBeWritten) {
  const auto file = folder_->create("file");
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->extend(2 * kUnitBytes, 0));
  write(**file, 0, 1, std::byte{'a'});
  write(**file, 1, 1, std::byte{'b'});
  EXPECT_EQ(folder_->stored_bytes(), 0u);
  expect_units(**file, "ab");
}

TEST_F(MappedFolderTest, ALogThereIsReadAgain) {
  std::size_t records = 0;
  LogOptions options = small_options();
  options.writer.segments_max = 1000;
  for (int life = 0; life < 3; ++life) {
    ReadRecords read;
    const auto log = Log::open(*folder_, options, read.apply());
    ASSERT_TRUE(log) << message(log.error());
    ASSERT_EQ(read.texts().size(), records);
    for (int i = 0; i < 40; ++i) {  // some segments
      append((*log)->writer(), std::string(1000, static_cast<char>('a' + i % 20)));
      if (i % 3 == 0) {
        ASSERT_TRUE((*log)->writer().flush());
      }
      ++records;
    }
    ASSERT_TRUE((*log)->close());
  }
  EXPECT_GT(folder_->stored_bytes(), records * 1000);
  PosixFolder plainly(place_->string());
  ReadRecords read;
  ASSERT_TRUE(Log::open(plainly, options, read.apply()));
  EXPECT_EQ(read.texts().size(), records);
}

TEST(MappedFolder, AFileSystemWhoseStoresAreNotDurableIsRefused) {
  const base::TemporaryFolder disk;
  if (is_tmpfs(disk.string())) GTEST_SKIP() << "temporary files are in a tmpfs";
  const auto folder = MappedFolder::at(disk.string());
  if (folder && !(*folder)->is_model()) GTEST_SKIP() << "temporary files are on persistent memory";
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code, Code::unsupported);
  EXPECT_EQ(MappedFolder::at(disk.string() + "/none").error(), (Error{Code::system, 0, ENOENT}));
}

}  // namespace
}  // namespace espalier::log
