// SPDX-License-Identifier: Apache-2.0
#include "log/posix_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

struct PosixFolderTest : ::testing::Test {
  base::TemporaryFolder temporary;
  PosixFolder folder{temporary.string()};
};

TEST_F(PosixFolderTest, WhatIsWrittenIsRead) {
  const auto file = folder.create("file");
  ASSERT_TRUE(file) << espalier::message(file.error());
  EXPECT_EQ(folder.create("file").error(), (Error{Code::system, 0, EEXIST}));
  ASSERT_TRUE((*file)->fill(3 << 20));
  EXPECT_EQ((*file)->size(), 3u << 20);
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  std::ranges::fill(unit.bytes(), std::byte{7});
  EXPECT_EQ((*file)->write(kUnitBytes, unit.bytes()), kUnitBytes);
  ASSERT_TRUE(folder.rename("file", "other"));
  ASSERT_TRUE(folder.sync());
  const auto again = folder.open("other");
  ASSERT_TRUE(again);
  UnitBuffer read;
  read.reserve(3 * kUnitBytes);
  EXPECT_EQ((*again)->read(0, read.bytes()), 3 * kUnitBytes);
  for (std::size_t unit_at = 0; unit_at < 3; ++unit_at) {
    EXPECT_TRUE(std::ranges::all_of(
        read.bytes().subspan(unit_at * kUnitBytes, kUnitBytes),
        [&](std::byte byte) { return byte == std::byte(unit_at == 1 ? 7 : 0); }));
  }
  EXPECT_EQ((*again)->read((3 << 20) - kUnitBytes, read.bytes()), kUnitBytes);
  EXPECT_EQ((*again)->read(3 << 20, read.bytes()), 0u);
  EXPECT_EQ(std::ranges::count(*folder.names(), std::string("other")), 1);
  ASSERT_TRUE(folder.remove("other"));
  EXPECT_EQ(folder.open("other").error(), (Error{Code::system, 0, ENOENT}));
  EXPECT_EQ(folder.remove("other").error(), (Error{Code::system, 0, ENOENT}));
  EXPECT_EQ(folder.rename("other", "one").error(), (Error{Code::system, 0, ENOENT}));
}

TEST_F(PosixFolderTest, WhatCannotBeFilledTakesNoSpace) {
  const auto file = folder.create("file");
  ASSERT_TRUE(file);
  EXPECT_EQ((*file)->fill(std::uint64_t{1} << 60).error(), (Error{Code::system, 0, ENOSPC}));
  EXPECT_EQ((*file)->size(), 0u);
}

TEST_F(PosixFolderTest, WhatIsExtendedIsZerosAndCanBeWritten) {
  const auto file = folder.create("file");
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->extend(2 * kUnitBytes, 0));
  ASSERT_TRUE((*file)->extend(kUnitBytes, 0));  // it is longer
  EXPECT_EQ((*file)->size(), 2 * kUnitBytes);
  UnitBuffer unit;
  unit.reserve(kUnitBytes);
  std::ranges::fill(unit.bytes(), std::byte{7});
  EXPECT_EQ((*file)->write(kUnitBytes, unit.bytes()), kUnitBytes);
  EXPECT_EQ((*file)->read(0, unit.bytes()), kUnitBytes);
  EXPECT_TRUE(
      std::ranges::all_of(unit.bytes(), [](std::byte byte) { return byte == std::byte{}; }));
  EXPECT_EQ((*file)->read(kUnitBytes, unit.bytes()), kUnitBytes);
  EXPECT_TRUE(
      std::ranges::all_of(unit.bytes(), [](std::byte byte) { return byte == std::byte{7}; }));
  EXPECT_EQ((*file)->extend(std::uint64_t{1} << 60, 0).error(), (Error{Code::system, 0, ENOSPC}));
  EXPECT_EQ((*file)->extend(3 * kUnitBytes, std::uint64_t{1} << 60).error(),
            (Error{Code::system, 0, ENOSPC}));
  EXPECT_EQ((*file)->size(), 2 * kUnitBytes);
}

// A checkpoint and its log on a real file system.
TEST_F(PosixFolderTest, ALogIsOpenedFromACheckpoint) {
  LogOptions options = small_options();
  {
    const auto log = Log::open(folder, options, ReadRecords().apply());
    ASSERT_TRUE(log) << message(log.error());
    for (int i = 0; i < 20; ++i) {
      append((*log)->writer(), std::string(3000, 'a'));
      ASSERT_TRUE((*log)->writer().flush());
    }
    CheckpointTerms terms;
    terms.store = kSomeNode;
    terms.sequence = 15;
    auto writer = CheckpointWriter::begin(folder, terms);
    ASSERT_TRUE(writer) << message(writer.error());
    const std::vector<std::byte> record(3 << 20, std::byte{5});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*writer)->add(record));
    ASSERT_TRUE((*writer)->finish(20));
    ASSERT_TRUE((*log)->writer().remove_below(15));
  }
  std::uint64_t of_checkpoint = 0;
  std::uint64_t first = 0;
  const auto log =
      Log::open(folder, options,
                [&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
                  if (sequence == 0) of_checkpoint += record.size();
                  if (first == 0) first = sequence;
                  return {};
                });
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ(of_checkpoint, 9u << 20);
  EXPECT_EQ(first, 15u);
  EXPECT_EQ((*log)->recovered().next_sequence, 21u);
}

TEST_F(PosixFolderTest, AFolderThatIsNotThereIsNamed) {
  PosixFolder none(temporary.string() + "/none");
  const auto log = Log::open(none, small_options(), ReadRecords().apply());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().error, (Error{Code::system, 0, ENOENT}));
}

TEST_F(PosixFolderTest, OneHasItAtATime) {
  PosixFolder other(temporary.string());
  {
    const auto lock = folder.lock();
    ASSERT_TRUE(lock);
    EXPECT_EQ(other.lock().error().code, Code::busy);
  }
  EXPECT_TRUE(other.lock());
}

TEST_F(PosixFolderTest, WhoOnlyReadsChangesNothing) {
  PosixFolder reader(temporary.string(), FolderAccess::read);
  EXPECT_EQ(reader.lock().error(), (Error{Code::system, 0, ENOENT}));  // and makes none
  {
    const auto log = Log::open(folder, small_options(), ReadRecords().apply());
    ASSERT_TRUE(log);
    append((*log)->writer(), "text");
    EXPECT_EQ(reader.lock().error().code, Code::busy);
  }
  const auto lock = reader.lock();
  ASSERT_TRUE(lock);
  EXPECT_EQ(folder.lock().error().code, Code::busy);
  const auto names = *reader.names();
  ReadRecords read;
  RecoveryTerms terms;
  terms.node = kSomeNode;
  ASSERT_TRUE(recover(reader, terms, read.apply()));
  EXPECT_EQ(read.texts(), std::vector<std::string>{"text"});
  EXPECT_EQ(reader.create("new").error(), (Error{Code::system, 0, EROFS}));
  EXPECT_EQ(reader.remove(names.front()).error(), (Error{Code::system, 0, EROFS}));
  EXPECT_EQ(reader.rename(names.front(), "new").error(), (Error{Code::system, 0, EROFS}));
  EXPECT_EQ(*reader.names(), names);
}

TEST_F(PosixFolderTest, ALogLivesInIt) {
  std::vector<std::string> texts;
  for (int life = 0; life < 3; ++life) {
    ReadRecords read;
    const auto log = Log::open(folder, small_options(), read.apply());
    ASSERT_TRUE(log) << message(log.error());
    EXPECT_EQ(read.texts(), texts);
    for (int i = 0; i < 20; ++i) {
      texts.push_back(std::string(static_cast<std::size_t>(i) * 100, 'x'));
      append((*log)->writer(), texts.back());
      ASSERT_TRUE((*log)->writer().prepare_spare());
      if (i % 3 != 0) continue;
      ASSERT_TRUE((*log)->writer().flush());
    }
    ASSERT_TRUE((*log)->close());
  }
}

}  // namespace
}  // namespace espalier::log
