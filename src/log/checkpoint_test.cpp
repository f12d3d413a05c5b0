// SPDX-License-Identifier: Apache-2.0
// Checkpoints as files: their bytes, what is refused, and how a log is opened with them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/checkpoint_reader.hpp"
#include "log/checkpoint_writer.hpp"
#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

std::string file_of(std::uint64_t number) {
  return numbered_name(kCheckpointBegin, number, kWhole);
}

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

struct CheckpointTest : ::testing::Test {
  /// Makes one of these records. Returns its number.
  std::uint64_t make(const std::vector<std::string>& records, std::uint64_t sequence = 1,
                     std::uint64_t through = 0) {
    CheckpointTerms terms;
    terms.store = kSomeNode;
    terms.sequence = sequence;
    terms.incarnation = 1;
    terms.block_bytes_max = kUnitBytes;
    terms.write_bytes = 2 * kUnitBytes;
    auto writer = CheckpointWriter::begin(folder, terms);
    EXPECT_TRUE(writer) << message(writer.error());
    for (const std::string& record : records) EXPECT_TRUE((*writer)->add(bytes_of_text(record)));
    const auto finished = (*writer)->finish(through == 0 ? sequence - 1 : through);
    EXPECT_TRUE(finished) << message(finished.error());
    return (*writer)->number();
  }
  std::vector<std::string> records_of(const CheckpointHeader& checkpoint) {
    std::vector<std::string> all;
    const auto read = read_checkpoint(
        folder, checkpoint,
        [&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
          EXPECT_EQ(sequence, 0u);
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record.data()) % 8, 0u);
          all.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
          return {};
        });
    EXPECT_TRUE(read) << message(read.error());
    return all;
  }
  FoundCheckpoints find() {
    auto found = find_checkpoints(folder, kSomeNode);
    EXPECT_TRUE(found) << message(found.error());
    return std::move(*found);
  }
  std::vector<std::string> names() {
    auto all = folder.names().value();
    std::ranges::sort(all);
    return all;
  }

  FaultyFolder folder{1};
};

TEST_F(CheckpointTest, TheHeaderIsAsTheDocumentSays) {
  CheckpointHeader header{};
  header.magic = kCheckpointMagic;
  header.version = kCheckpointVersion;
  header.store = 0x1122;
  header.number = 3;
  header.sequence = 0x0405;
  header.through = 0x0607;
  header.records = 8;
  header.blocks_end = 0x2000;
  header.salt = 0x1817161514131211;
  header.incarnation = 0x0a0b;
  header.crc = checksum_of(header);
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  std::string golden(std::string_view(
      "SESPCKP\0\1\0\0\0\0\0\0\0\x22\x11\0\0\0\0\0\0\3\0\0\0\0\0\0\0\5\4\0\0\0\0\0\0"
      "\7\6\0\0\0\0\0\0\x8\0\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\x11\x12\x13\x14\x15\x16\x17\x18"
      "\x0b\x0a\0\0\0\0\0\0\0\0\0\0",
      84));
  EXPECT_EQ(bytes.substr(0, 84), golden);
  const std::uint32_t crc = base::crc32c(bytes_of_text(golden));
  EXPECT_EQ(header.crc, crc);
}

TEST_F(CheckpointTest, WhatWasWrittenIsRead) {
  std::vector<std::string> records;
  for (std::size_t i = 0; i < 200; ++i) records.push_back(std::string(i * 7 % 300 + 1, 'a'));
  records.push_back(std::string(5 * kUnitBytes, 'b'));  // longer than a write
  records.push_back("the last");
  const std::uint64_t number = make(records, 7, 9);
  const FoundCheckpoints found = find();
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->number, number);
  EXPECT_EQ(found.newest->sequence, 7u);
  EXPECT_EQ(found.newest->through, 9u);
  EXPECT_EQ(found.newest->records, records.size());
  EXPECT_EQ(records_of(*found.newest), records);
  EXPECT_TRUE(found.damaged.empty());
  EXPECT_TRUE(found.unfinished.empty());
}

TEST_F(CheckpointTest, OneWithoutRecordsIsOne) {
  make({});
  const FoundCheckpoints found = find();
  ASSERT_TRUE(found.newest);
  EXPECT_TRUE(records_of(*found.newest).empty());
}

TEST_F(CheckpointTest, TheNextOneHasTheNextNumberAndTheOlderOneGoes) {
  EXPECT_EQ(make({"a"}), 1u);
  EXPECT_EQ(make({"b"}), 2u);
  EXPECT_EQ(names(), std::vector<std::string>{file_of(2)});
}

TEST_F(CheckpointTest, OneThatIsNotFinishedDoesNotCountAndGoes) {
  CheckpointTerms terms;
  terms.store = kSomeNode;
  {
    auto writer = CheckpointWriter::begin(folder, terms);
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->add(bytes_of_text("a")));
    EXPECT_FALSE(find().newest);
    EXPECT_EQ(find().unfinished.size(), 1u);
  }
  EXPECT_TRUE(names().empty());
  folder.put(numbered_name(kCheckpointBegin, 4, kBeingMade), std::vector<std::byte>(100));
  EXPECT_EQ(make({"b"}), 5u);
  EXPECT_EQ(names(), std::vector<std::string>{file_of(5)});
}

// Of a block each unit of 64 bytes, of the header each bit.
TEST_F(CheckpointTest, EachChangedBitIsFound) {
  make({std::string(3000, 'a'), std::string(3000, 'b')});
  const std::string name = file_of(1);
  const std::uint64_t size = folder.bytes(name).size();
  ASSERT_EQ(size, 3 * kUnitBytes);
  for (std::uint64_t at = 0; at < size; at += at < sizeof(CheckpointHeader) ? 1 : 64) {
    if (at >= sizeof(CheckpointHeader) && at < kUnitBytes) continue;  // zeros that do not count
    for (unsigned bit = 0; bit < 8; ++bit) {
      folder.flip(name, at, bit);
      const auto found = find_checkpoints(folder, kSomeNode);
      ASSERT_TRUE(found) << at;
      EXPECT_FALSE(found->newest) << at;
      EXPECT_EQ(found->damaged.size(), 1u) << at;
      folder.flip(name, at, bit);
    }
  }
  EXPECT_TRUE(find().newest);
}

TEST_F(CheckpointTest, EachShorterFileIsFound) {
  make({std::string(3000, 'a'), std::string(3000, 'b')});
  const std::vector<std::byte> whole = folder.bytes(file_of(1));
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 512) {
    folder.put(file_of(1), {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)});
    const auto found = find_checkpoints(folder, kSomeNode);
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->newest) << bytes;
  }
}

// So that no block of it asks for more memory than the file has bytes.
TEST_F(CheckpointTest, AnEndBehindTheFilesIsFound) {
  make({"a"});
  std::vector<std::byte> bytes = folder.bytes(file_of(1));
  CheckpointHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.blocks_end = std::uint64_t{1} << 40;
  header.crc = checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  folder.put(file_of(1), bytes);
  const FoundCheckpoints found = find();
  EXPECT_FALSE(found.newest);
  ASSERT_EQ(found.damaged.size(), 1u);
  EXPECT_EQ(found.damaged[0].offset, bytes.size());
}

TEST_F(CheckpointTest, AnotherStoresAndALaterFormatAreRefused) {
  make({"a"});
  const auto others = find_checkpoints(folder, kSomeNode + 1);
  ASSERT_FALSE(others);
  EXPECT_EQ(others.error().fault, LogFault::other_node);
  std::vector<std::byte> bytes = folder.bytes(file_of(1));
  CheckpointHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.version = kCheckpointVersion + 1;
  header.crc = checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  folder.put(file_of(1), bytes);
  const auto later = find_checkpoints(folder, kSomeNode);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().fault, LogFault::newer);
}

TEST_F(CheckpointTest, AFileUnderAnotherNumberIsDamaged) {
  make({"a"});
  folder.put(file_of(2), folder.bytes(file_of(1)));
  const FoundCheckpoints found = find();
  ASSERT_TRUE(found.newest);
  EXPECT_EQ(found.newest->number, 1u);
  ASSERT_EQ(found.damaged.size(), 1u);
  EXPECT_EQ(found.damaged[0].file, file_of(2));
}

TEST_F(CheckpointTest, ADiskThatFailsOrIsFullIsAnError) {
  CheckpointTerms terms;
  terms.store = kSomeNode;
  folder.set({.bytes_max = 8 * kUnitBytes});
  auto writer = CheckpointWriter::begin(folder, terms);
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->add(std::vector<std::byte>(10 * kUnitBytes)));
  const auto full = (*writer)->finish(0);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().fault, LogFault::system);
  EXPECT_EQ(full.error().error.detail, static_cast<std::uint32_t>(ENOSPC));
  EXPECT_FALSE((*writer)->finished());
  writer->reset();
  EXPECT_TRUE(names().empty());
}

// Before older ones go.
TEST_F(CheckpointTest, OneThatTheDiskDoesNotHaveAsItWasWrittenIsNotNamed) {
  make({"a"});
  CheckpointTerms terms;
  terms.store = kSomeNode;
  terms.block_bytes_max = kUnitBytes;
  terms.write_bytes = kUnitBytes;
  auto writer = CheckpointWriter::begin(folder, terms);
  ASSERT_TRUE(writer);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE((*writer)->add(std::vector<std::byte>(3000)));
  folder.flip(numbered_name(kCheckpointBegin, 2, kBeingMade), kBlocksBegin + 100, 3);
  const auto finished = (*writer)->finish(0);
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().fault, LogFault::checkpoint);
  EXPECT_EQ(finished.error().offset, kBlocksBegin);
  EXPECT_FALSE((*writer)->finished());
  writer->reset();
  EXPECT_EQ(names(), std::vector<std::string>{file_of(1)});
}

TEST_F(CheckpointTest, LeavesSpaceForTheLog) {
  CheckpointTerms terms;
  terms.store = kSomeNode;
  terms.write_bytes = kUnitBytes;
  terms.leave_bytes = 2 * kSmallSegment;
  const auto log = Log::open(folder, small_options(), ReadRecords().apply());
  ASSERT_TRUE(log) << message(log.error());
  folder.set({.bytes_max = 4 * kSmallSegment});
  {
    auto writer = CheckpointWriter::begin(folder, terms);
    ASSERT_TRUE(writer);
    LogResult<void> added;
    const std::vector<std::byte> record(kUnitBytes);
    for (int i = 0; i < 100 && added; ++i) added = (*writer)->add(record);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().error, (Error{Code::system, 0, ENOSPC}));
    // Its file is still there.
    for (int i = 0; i < 8; ++i) {
      append((*log)->writer(), std::string(3000, 'a'));
      ASSERT_TRUE((*log)->writer().flush()) << i;
    }
    EXPECT_EQ((*log)->writer().segments().count(), 2u);
  }
  EXPECT_FALSE(find().newest);
}

/// A log of records 1 to 10 in several segments, and a checkpoint whose sequence is 6.
struct CheckpointedLog : CheckpointTest {
  void write_log() {
    auto log = open();
    ASSERT_TRUE(log) << message(log.error());
    for (int i = 1; i <= 10; ++i) {
      append((*log)->writer(), std::string(3 * kUnitBytes, static_cast<char>('a' + i)));
      ASSERT_TRUE((*log)->writer().flush());
    }
    ASSERT_GT((*log)->writer().segments().count(), 3u);
  }
  LogResult<std::unique_ptr<Log>> open(std::optional<std::uint64_t> accepts_from = {}) {
    first = 0;
    last = 0;
    of_checkpoint.clear();
    LogOptions options = small_options();
    options.recovery.accept_loss_from = accepts_from;
    return Log::open(
        folder, options,
        [&](std::uint64_t sequence, std::span<const std::byte> record) -> Result<void> {
          if (sequence == 0) {
            of_checkpoint.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
            return {};
          }
          if (first == 0) first = sequence;
          EXPECT_TRUE(last == 0 || sequence == last + 1);
          last = sequence;
          return {};
        });
  }
  void remove_below(std::uint64_t sequence) {
    auto log = open();
    ASSERT_TRUE(log);
    ASSERT_TRUE((*log)->writer().remove_below(sequence));
  }
  /// Takes the blocks of the segment that begins at this sequence.
  void empty_segment_at(std::uint64_t sequence) {
    for (const std::string& name : names()) {
      if (!segment_of(name, kInUse)) continue;
      std::vector<std::byte> bytes = folder.bytes(name);
      SegmentHeader header{};
      std::memcpy(&header, bytes.data(), sizeof header);
      if (header.first_sequence != sequence) continue;
      std::fill(bytes.begin() + kBlocksBegin, bytes.end(), std::byte{0});
      folder.put(name, bytes);
    }
  }
  void remove_segments() {
    for (const std::string& name : names()) {
      if (segment_of(name, kInUse)) {
        ASSERT_TRUE(folder.remove(name));
      }
    }
    ASSERT_TRUE(folder.sync());
  }
  /// The loss of what begins at this sequence is named, accepted once, and never met again.
  void expect_accepted_once(std::uint64_t sequence, LogFault fault) {
    const auto refused = open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().fault, fault);
    ASSERT_EQ(refused.error().sequence, sequence);
    std::uint64_t written = 0;
    {
      const auto log = open(sequence);
      ASSERT_TRUE(log) << message(log.error());
      ASSERT_TRUE((*log)->recovered().cut);
      EXPECT_TRUE((*log)->recovered().cut->accepted);
      written = append((*log)->writer(), "again");
      ASSERT_TRUE((*log)->writer().flush());
    }
    EXPECT_EQ(written, sequence);
    for (int times = 0; times < 2; ++times) {
      const auto log = open();
      ASSERT_TRUE(log) << message(log.error());
      EXPECT_EQ(last, written);
      EXPECT_EQ(of_checkpoint, std::vector<std::string>{"x"});
    }
  }
  void damage(std::uint64_t number) { folder.flip(file_of(number), kUnitBytes + 100, 3); }

  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::vector<std::string> of_checkpoint;
};

TEST_F(CheckpointedLog, IsReadFromTheCheckpointOn) {
  write_log();
  make({"x", "y"}, 6, 8);
  remove_below(6);
  const auto log = open();
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ(of_checkpoint, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(first, 6u);
  EXPECT_EQ(last, 10u);
  ASSERT_TRUE((*log)->recovered().checkpoint);
  EXPECT_EQ((*log)->recovered().checkpoint->sequence, 6u);
  EXPECT_EQ((*log)->recovered().next_sequence, 11u);
}

TEST_F(CheckpointedLog, ADamagedCheckpointIsLeftOutWhereTheLogHasAll) {
  write_log();
  make({"x"}, 6, 8);
  damage(1);
  const auto log = open();
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(last, 10u);
  EXPECT_FALSE((*log)->recovered().checkpoint);
  ASSERT_EQ((*log)->recovered().damaged_checkpoints.size(), 1u);
  EXPECT_EQ((*log)->recovered().damaged_checkpoints[0].fault, LogFault::checkpoint);
}

TEST_F(CheckpointedLog, ADamagedCheckpointIsAnErrorWhereTheLogBeginsBehind) {
  write_log();
  make({"x"}, 6, 8);
  remove_below(6);
  damage(1);
  {
    const auto log = open();
    ASSERT_FALSE(log);
    EXPECT_EQ(log.error().fault, LogFault::checkpoint);
    EXPECT_EQ(log.error().file, file_of(1));
  }
  // Where the loss of everything is accepted, the file stays for people.
  ASSERT_TRUE(open(1));
  make({"y"});
  const std::vector<std::string> all = names();
  EXPECT_EQ(std::ranges::count(all, numbered_name(kCheckpointBegin, 1, kGivenUp)), 1);
  EXPECT_EQ(std::ranges::count(all, file_of(2)), 1);
}

// Verifying it first would show nothing that could be done about damage.
TEST_F(CheckpointedLog, AnOnlyCheckpointIsReadOnceWhereTheLogBeginsBehind) {
  const std::string record(200 * kUnitBytes, 'x');  // more than the log has
  write_log();
  make({record}, 6, 8);
  const auto read_bytes = [&] {
    const std::uint64_t before = folder.bytes_read();
    EXPECT_TRUE(open());
    EXPECT_EQ(of_checkpoint, std::vector<std::string>{record});
    return folder.bytes_read() - before;
  };
  const std::uint64_t with_whole_log = read_bytes();
  remove_below(6);
  const std::uint64_t once = read_bytes();
  EXPECT_GE(once, record.size());
  EXPECT_LT(once, 2 * record.size());
  EXPECT_GE(with_whole_log, 2 * record.size());
}

TEST_F(CheckpointedLog, ADamagedCheckpointWithoutALogIsNoEmptyStore) {
  write_log();
  make({"x"}, 6, 8);
  remove_segments();
  damage(1);
  EXPECT_EQ(open().error().fault, LogFault::checkpoint);
  {
    const auto log = open(1);
    ASSERT_TRUE(log) << message(log.error());
    EXPECT_TRUE((*log)->recovered().cut->accepted);
  }
  EXPECT_TRUE(open());
}

TEST_F(CheckpointedLog, OfTwoTheOlderOneCountsWhereTheNewerIsDamaged) {
  write_log();
  make({"x"}, 3, 4);
  const std::vector<std::byte> older = folder.bytes(file_of(1));
  make({"y"}, 6, 8);
  folder.put(file_of(1), older);
  damage(2);
  const auto log = open();
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ(of_checkpoint, std::vector<std::string>{"x"});
  EXPECT_EQ(first, 3u);
}

// It was named only once the log was durable up to there.
TEST_F(CheckpointedLog, ALogThatEndsBeforeTheCheckpointDidIsDamaged) {
  write_log();
  make({"x"}, 6, 11);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::hole);
  EXPECT_EQ(log.error().sequence, 11u);
}

TEST_F(CheckpointedLog, ALossBelowItsEndIsAcceptedOnceForAll) {
  write_log();
  make({"x"}, 6, 9);
  empty_segment_at(8);
  expect_accepted_once(8, LogFault::hole);
}

// A bit of the last block, or none of its bytes: only the checkpoint shows that it was durable.
TEST_F(CheckpointedLog, ALossThatOnlyItsEndShowsIsAcceptedOnceForAll) {
  write_log();
  make({"x"}, 6, 10);
  empty_segment_at(10);
  expect_accepted_once(10, LogFault::hole);
}

TEST_F(CheckpointedLog, TheLossOfAllSegmentsIsAcceptedOnceForAll) {
  for (const std::uint64_t through : {5, 8}) {
    write_log();
    make({"x"}, 6, through);
    remove_segments();
    expect_accepted_once(6, LogFault::begins_late);
    for (const std::string& name : names()) ASSERT_TRUE(folder.remove(name));
    ASSERT_TRUE(folder.sync());
  }
}

// What a later checkpoint says was durable was so after that loss.
TEST_F(CheckpointedLog, ALossBelowTheEndOfALaterCheckpointIsNoticed) {
  write_log();
  make({"x"}, 6, 9);
  empty_segment_at(8);
  ASSERT_TRUE(open(8));
  CheckpointTerms terms;
  terms.store = kSomeNode;
  terms.sequence = 8;
  {
    const auto log = open();
    ASSERT_TRUE(log);
    terms.incarnation = (*log)->writer().incarnation();
    append((*log)->writer(), "again");
    ASSERT_TRUE((*log)->writer().flush());
    auto writer = CheckpointWriter::begin(folder, terms);
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->finish(8));
  }
  empty_segment_at(8);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::hole);
  EXPECT_EQ(log.error().sequence, 8u);
}

TEST_F(CheckpointTest, NoneComesBehindTheHighestNumber) {
  folder.put(file_of(~std::uint64_t{0}), std::vector<std::byte>(kUnitBytes));
  CheckpointTerms terms;
  terms.store = kSomeNode;
  const auto writer = CheckpointWriter::begin(folder, terms);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().fault, LogFault::checkpoint);
  EXPECT_EQ(writer.error().file, file_of(~std::uint64_t{0}));
}

TEST_F(CheckpointedLog, ACheckpointWithoutItsLogIsRefused) {
  make({"x"}, 1, 1);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::begins_late);
}

TEST_F(CheckpointedLog, WhatWasLeftUnfinishedGoesWhenTheLogIsOpened) {
  write_log();
  folder.put(numbered_name(kCheckpointBegin, 1, kBeingMade), std::vector<std::byte>(100));
  ASSERT_TRUE(open());
  for (const std::string& name : names()) {
    EXPECT_FALSE(number_in(name, kCheckpointBegin, kBeingMade)) << name;
  }
}

/// Of pieces of 4 MiB, which a thread reads ahead.
struct CheckpointPiecesConcurrency : CheckpointTest {
  static constexpr std::size_t kMiB = std::size_t{1} << 20;
  /// Blocks that end in the piece behind, and one that is longer than what is carried there.
  static std::vector<std::string> some_pieces() {
    std::vector<std::string> records(60, std::string(150'000, 'a'));
    records.insert(records.begin() + 25, std::string(kMiB + 50'000, 'b'));
    records.insert(records.begin() + 40, std::string(2 * kMiB, 'c'));
    records.push_back("the last");
    return records;
  }
  void make_pieces() {
    CheckpointTerms terms;
    terms.store = kSomeNode;
    auto writer = CheckpointWriter::begin(folder, terms);
    for (const std::string& record : some_pieces()) {
      ASSERT_TRUE((*writer)->add(bytes_of_text(record)));
    }
    ASSERT_TRUE((*writer)->finish(0));
  }
};

TEST_F(CheckpointPiecesConcurrency, WhatWasWrittenIsRead) {
  ASSERT_NO_FATAL_FAILURE(make_pieces());
  for (const bool ahead : {false, true}) {
    folder.read_ahead(ahead);
    const auto found = find();
    ASSERT_TRUE(found.newest);
    EXPECT_EQ(records_of(*found.newest), some_pieces());
  }
}

TEST_F(CheckpointPiecesConcurrency, DamageInAnyOfThemIsFound) {
  ASSERT_NO_FATAL_FAILURE(make_pieces());
  folder.read_ahead(true);
  const std::string name = file_of(1);
  const std::size_t bytes = folder.bytes(name).size();
  for (std::uint64_t at = kUnitBytes + 100; at < bytes; at += 3 * kMiB) {
    while (folder.bytes(name)[at] == std::byte{0}) --at;  // behind a block's records
    folder.flip(name, at, 3);
    EXPECT_EQ(find().damaged.size(), 1u) << at;
    folder.flip(name, at, 3);
  }
  EXPECT_TRUE(find().newest);
  folder.bytes(name).resize(bytes - 3 * kMiB);  // shorter than its header says
  EXPECT_EQ(find().damaged.size(), 1u);
}

}  // namespace
}  // namespace espalier::log
