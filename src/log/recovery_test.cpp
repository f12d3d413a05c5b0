// SPDX-License-Identifier: Apache-2.0
#include "log/recovery.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

using Texts = std::vector<std::string>;

/// A log of one record in each write: record n lies in unit n of the first segment, up to 7.
struct RecoveryTest : ::testing::Test {
  void write(unsigned records, LogOptions options = small_options()) {
    const auto log = Log::open(folder, options, ReadRecords().apply());
    ASSERT_TRUE(log) << message(log.error());
    for (unsigned i = 0; i < records; ++i) {
      append((*log)->writer(), "r" + std::to_string((*log)->writer().queue().next()));
      ASSERT_TRUE((*log)->writer().flush());
    }
    folder.crash();  // closing leaves no mark
  }
  LogResult<std::unique_ptr<Log>> open(LogOptions options = small_options()) {
    folder.restart(true);
    read = ReadRecords();
    return Log::open(folder, options, read.apply());
  }
  void erase_unit(std::uint64_t segment, std::size_t unit) {
    auto bytes = folder.bytes(segment_name(segment));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(unit * kUnitBytes);
    std::fill(begin, begin + kUnitBytes, std::byte{0});
    folder.put(segment_name(segment), bytes);
  }
  static LogOptions accepting(std::uint64_t sequence) {
    LogOptions options = small_options();
    options.recovery.accept_loss_from = sequence;
    return options;
  }

  FaultyFolder folder{1};
  ReadRecords read;
};

TEST_F(RecoveryTest, AnEmptyFolderIsANewLog) {
  const auto log = open();
  ASSERT_TRUE(log);
  EXPECT_EQ((*log)->writer().durable(), 0u);
  EXPECT_FALSE((*log)->recovered().cut);
  EXPECT_EQ(append((*log)->writer(), ""), 1u);
}

TEST_F(RecoveryTest, AFolderWithoutTheLogThatACheckpointNeedsIsNoticed) {
  LogOptions options = small_options();
  options.recovery.from = 9;
  const auto log = open(options);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::begins_late);
  EXPECT_EQ(log.error().file, ".");
  options.recovery.accept_loss_from = 9;
  EXPECT_TRUE(open(options));
}

TEST_F(RecoveryTest, WhatWasAcknowledgedIsThere) {
  write(10);  // in two segments
  const auto log = open();
  ASSERT_TRUE(log);
  EXPECT_EQ(read.texts(), (Texts{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10"}));
  EXPECT_EQ((*log)->writer().durable(), 10u);
  EXPECT_EQ((*log)->writer().segments().segments(),
            (std::vector<SegmentRange>{{1, 1}, {2, 8}, {3, 11}}));
}

TEST_F(RecoveryTest, OnlyWhatIsWantedIsApplied) {
  write(10);
  LogOptions options = small_options();
  options.recovery.from = 9;
  ASSERT_TRUE(open(options));
  EXPECT_EQ(read.first(), 9u);
  EXPECT_EQ(read.texts(), (Texts{"r9", "r10"}));
}

TEST_F(RecoveryTest, DamageBelowWhatIsWantedIsNoLoss) {
  LogOptions options = small_options();
  options.recovery.from = 4;
  write(6);
  folder.restart(true);
  for (const std::size_t unit : {1, 3}) {
    erase_unit(1, unit);
    ASSERT_TRUE(open(options)) << unit;
    EXPECT_EQ(read.texts(), (Texts{"r4", "r5", "r6"}));
  }
  erase_unit(1, 4);
  const auto log = open(options);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::hole);
  EXPECT_EQ(log.error().sequence, 4u);
}

TEST_F(RecoveryTest, AHoleBelowTheMarkIsDamage) {
  write(5);
  folder.restart(true);
  erase_unit(1, 2);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error(), (LogError{{Code::corrupt, 0, 0},
                                   LogFault::hole,
                                   FileName("log-0000000000000001.seg"),
                                   2 * kUnitBytes,
                                   2}));
  EXPECT_EQ(message(log.error())
                .find("log: records that were durable are missing: file log-0000000000000001.seg, "
                      "offset 8192, sequence 2: "),
            0u);
  EXPECT_EQ(open(accepting(3)).error().fault, LogFault::hole);
  ASSERT_TRUE(open(accepting(2)));
  EXPECT_EQ(read.texts(), (Texts{"r1"}));
  ASSERT_TRUE(open());  // it was accepted once for all
  EXPECT_EQ(read.texts(), (Texts{"r1"}));
}

TEST_F(RecoveryTest, AHoleBeforeALaterSegmentIsDamage) {
  write(8);
  folder.restart(true);
  erase_unit(1, 7);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::hole);
  EXPECT_EQ(log.error().sequence, 7u);
  ASSERT_TRUE(open(accepting(7)));
  EXPECT_EQ(read.texts().size(), 6u);
  ASSERT_TRUE(open());  // the segment behind, of record 8, does not count any more
  EXPECT_EQ(read.texts().size(), 6u);
}

TEST_F(RecoveryTest, ATornTailIsCut) {
  write(5);
  folder.restart(true);
  folder.flip(segment_name(1), 5 * kUnitBytes + 60, 3);
  {
    const auto log = open();
    ASSERT_TRUE(log) << message(log.error());
    EXPECT_EQ(read.texts().size(), 4u);
    const auto& cut = (*log)->recovered().cut;
    ASSERT_TRUE(cut);
    EXPECT_EQ(cut->file, segment_name(1));
    EXPECT_EQ(cut->offset, 5 * kUnitBytes);
    EXPECT_EQ(cut->sequence, 5u);
    EXPECT_FALSE(cut->accepted);
  }
}

// Three blocks in one write carry one mark, so the last says nothing of the first.
TEST_F(RecoveryTest, AHoleAboveTheMarkIsATornTail) {
  {
    const auto log = open();
    for (int i = 0; i < 3; ++i) append((*log)->writer(), std::string(3000, 'x'));
    ASSERT_TRUE((*log)->writer().flush());
    folder.crash();
  }
  folder.restart(true);
  erase_unit(1, 1);
  const auto log = open();
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_TRUE(read.texts().empty());
  EXPECT_EQ((*log)->recovered().cut->sequence, 1u);
}

TEST_F(RecoveryTest, AMarkOfAClosedLogKeepsItsLastBlock) {
  {
    const auto log = open();
    append((*log)->writer(), "last");
    ASSERT_TRUE((*log)->close());
  }
  erase_unit(1, 1);
  EXPECT_EQ(open().error().fault, LogFault::hole);
}

TEST_F(RecoveryTest, DamagedHeadersAreNamed) {
  write(10);
  folder.restart(true);
  folder.flip(segment_name(2), 33, 0);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::header);
  EXPECT_EQ(log.error().file, segment_name(2));
  EXPECT_EQ(log.error().sequence, 8u);
  ASSERT_TRUE(open(accepting(8)));
  EXPECT_EQ(read.texts().size(), 7u);
  ASSERT_TRUE(open());
  EXPECT_EQ(read.texts().size(), 7u);
  EXPECT_EQ(std::ranges::count(*folder.names(), segment_name(2, kGivenUp)), 1);
}

TEST_F(RecoveryTest, ADamagedHeaderInTheMiddleIsNamed) {
  write(16);  // in three segments
  folder.restart(true);
  folder.flip(segment_name(2), 33, 0);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error(),
            (LogError{{Code::corrupt, 0, 0}, LogFault::header, FileName(segment_name(2)), 0, 8}));
  erase_unit(1, 4);
  EXPECT_EQ(open().error().fault, LogFault::hole);  // a mark behind it shows that
  EXPECT_EQ(open().error().file, segment_name(1));
  ASSERT_TRUE(open(accepting(4)));
  EXPECT_EQ(read.texts().size(), 3u);
  ASSERT_TRUE(open());
  EXPECT_EQ(read.texts().size(), 3u);
}

// The segment in which the loss begins has nothing that counts: it is given up like those behind.
TEST_F(RecoveryTest, ALostSegmentThatBeginsWhereTheLogEndsIsGivenUp) {
  bool done = false;
  for (std::uint64_t operation = 1; !done; ++operation) {
    ASSERT_LT(operation, 100u);
    const std::vector<std::string> names = *folder.names();
    for (const std::string& name : names) ASSERT_TRUE(folder.remove(name));
    ASSERT_TRUE(folder.sync());
    write(16);
    folder.restart(true);
    erase_unit(2, 1);
    folder.crash_in(operation);
    done = Log::open(folder, accepting(8), ReadRecords().apply()).has_value() && !folder.crashed();
    const auto after = open();  // where the crash was early, nothing is accepted yet
    if (!after) {
      EXPECT_EQ(after.error().sequence, 8u) << operation;
      continue;
    }
    EXPECT_EQ(read.texts().size(), 7u) << operation;
    for (const std::uint64_t lost : {2, 3}) {
      EXPECT_EQ(std::ranges::count(*folder.names(), segment_name(lost, kGivenUp)), 1) << operation;
    }
  }
}

TEST_F(RecoveryTest, SegmentsThatAreMissingAreNoticed) {
  write(16);
  folder.restart(true);
  ASSERT_TRUE(folder.remove(segment_name(2)));
  ASSERT_TRUE(folder.sync());
  EXPECT_EQ(open().error().fault, LogFault::hole);
  ASSERT_TRUE(folder.remove(segment_name(1)));
  ASSERT_TRUE(folder.sync());
  EXPECT_EQ(open().error().fault, LogFault::begins_late);
  EXPECT_EQ(open(accepting(2)).error().fault, LogFault::begins_late);
  ASSERT_TRUE(open(accepting(1)));  // of everything
  ASSERT_TRUE(open());
  EXPECT_TRUE(read.texts().empty());
}

// Segments behind an accepted loss must not come back when what came after it is damaged in turn.
TEST_F(RecoveryTest, WhatWasGivenUpStaysSo) {
  write(16);
  folder.restart(true);
  erase_unit(1, 3);
  {
    const auto log = open(accepting(3));
    ASSERT_TRUE(log);
    EXPECT_EQ((*log)->recovered().lost, (std::vector{segment_name(2), segment_name(3)}));
    EXPECT_EQ((*log)->writer().segments().segments(), (std::vector<SegmentRange>{{1, 1}, {4, 3}}));
  }
  folder.flip(segment_name(4), 50, 0);
  const auto log = open();
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().fault, LogFault::hole);  // as at first
  EXPECT_EQ(log.error().sequence, 3u);
}

// Nor those behind it in the same segment, where a checkpoint has what is missing.
TEST_F(RecoveryTest, WhatWasGivenUpInASegmentStaysSo) {
  write(7);
  folder.restart(true);
  erase_unit(1, 3);
  {
    const auto log = open(accepting(3));
    ASSERT_TRUE(log);
    for (int i = 0; i < 3; ++i) append((*log)->writer(), "another");
    ASSERT_TRUE((*log)->close());
  }
  folder.flip(segment_name(2), 50, 0);
  LogOptions options = small_options();
  options.recovery.from = 5;
  const auto log = open(options);
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().sequence, 3u);
  EXPECT_EQ(read.texts(), Texts());
}

TEST_F(RecoveryTest, ACrashWhileALossIsAcceptedLosesNoMore) {
  bool done = false;
  for (std::uint64_t operation = 1; !done; ++operation) {
    ASSERT_LT(operation, 100u);
    const std::vector<std::string> names = *folder.names();
    for (const std::string& name : names) ASSERT_TRUE(folder.remove(name));
    ASSERT_TRUE(folder.sync());
    write(10);
    folder.restart(true);
    folder.flip(segment_name(2), 33, 0);
    folder.crash_in(operation);
    done = Log::open(folder, accepting(8), ReadRecords().apply()).has_value() && !folder.crashed();
    {
      const auto after = open(accepting(8));
      ASSERT_TRUE(after) << operation << ": " << message(after.error());
      EXPECT_EQ(read.texts().size(), 7u) << operation;
    }
    ASSERT_TRUE(open());
    EXPECT_EQ(read.texts().size(), 7u);
  }
}

TEST_F(RecoveryTest, AnEndBeforeWhatIsWantedIsDamage) {
  write(3);
  LogOptions options = small_options();
  options.recovery.from = 6;
  EXPECT_EQ(open(options).error().fault, LogFault::hole);
  options.recovery.accept_loss_from = 4;
  const auto log = open(options);
  ASSERT_TRUE(log);
  EXPECT_EQ((*log)->writer().durable(), 5u);
}

TEST_F(RecoveryTest, ThatALossWasAcceptedIsKnownAsLongAsTheSegmentBehindItIsThere) {
  write(10);
  EXPECT_FALSE((*open())->recovered().after_loss);
  erase_unit(1, 0);
  ASSERT_TRUE(open(accepting(1)));
  for (int i = 0; i < 2; ++i) {
    const auto log = open();
    ASSERT_TRUE(log);
    EXPECT_FALSE((*log)->recovered().cut);
    EXPECT_TRUE((*log)->recovered().after_loss);
  }
}

TEST_F(RecoveryTest, AnotherNodesDataIsRefused) {
  write(1);
  LogOptions options = small_options();
  options.recovery.node = 5;
  options.recovery.accept_loss_from = 1;
  EXPECT_EQ(open(options).error().fault, LogFault::other_node);
  EXPECT_EQ(open(options).error().error.code, Code::unsupported);
}

TEST_F(RecoveryTest, ALaterFormatIsRefused) {
  write(1);
  folder.restart(true);
  auto bytes = folder.bytes(segment_name(1));
  SegmentHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.version = kFormatVersion + 1;
  header.crc = checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  folder.put(segment_name(1), bytes);
  EXPECT_EQ(open(accepting(1)).error().fault, LogFault::newer);
}

TEST_F(RecoveryTest, AFolderIsOpenedOnce) {
  const auto log = open();
  ASSERT_TRUE(log);
  const auto again = Log::open(folder, small_options(), ReadRecords().apply());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().fault, LogFault::locked);
  EXPECT_EQ(again.error().error.code, Code::busy);
}

TEST_F(RecoveryTest, ARecordThatCannotBeAppliedIsNamed) {
  write(3);
  folder.restart(true);
  const auto log =
      Log::open(folder, small_options(),
                [](std::uint64_t sequence, std::span<const std::byte>) -> Result<void> {
                  if (sequence == 2) return fail(Code::corrupt, 7);
                  return {};
                });
  ASSERT_FALSE(log);
  EXPECT_EQ(
      log.error(),
      (LogError{
          {Code::corrupt, 0, 7}, LogFault::refused, FileName(segment_name(1)), 2 * kUnitBytes, 2}));
}

TEST_F(RecoveryTest, MemoryThatRunsOutIsAnError) {
  write(10);
  bool opened = false;
  for (std::uint64_t operation = 1; !opened; ++operation) {
    ASSERT_LT(operation, 100u);
    folder.restart(true);
    folder.memory_ends_in(operation);
    const auto log = Log::open(folder, small_options(), ReadRecords().apply());
    folder.memory_ends_in(0);
    opened = log.has_value();
    if (!opened) {
      EXPECT_EQ(log.error(),
                (LogError{{Code::out_of_memory, 0, 0}, LogFault::no_memory, FileName("."), 0, 1}));
    }
  }
  ASSERT_TRUE(open());
  EXPECT_EQ(read.texts().size(), 10u);
}

TEST_F(RecoveryTest, EachLifeHasAnotherIncarnation) {
  for (std::uint64_t life = 1; life < 4; ++life) {
    write(1);
    folder.restart(true);
    SegmentHeader header{};
    std::memcpy(&header, folder.bytes(segment_name(life)).data(), sizeof header);
    EXPECT_EQ(header.incarnation, life);
    EXPECT_EQ(header.first_sequence, life);
  }
}

TEST_F(RecoveryTest, TheIncarnationIsKnownBeforeTheFirstRecord) {
  for (std::uint64_t life = 1; life < 4; ++life) {
    LogOptions options = small_options();
    std::uint64_t begun = 0;
    options.recovery.begins = [&](std::uint64_t incarnation) {
      EXPECT_TRUE(read.texts().empty());
      begun = incarnation;
    };
    const auto log = open(options);
    ASSERT_TRUE(log);
    EXPECT_EQ(begun, life);
    EXPECT_EQ((*log)->writer().incarnation(), life);
    append((*log)->writer(), "r");
    ASSERT_TRUE((*log)->writer().flush());
  }
}

TEST_F(RecoveryTest, TheIncarnationIsAsHighAsTheOwnerWants) {
  std::uint64_t last = 0;
  for (const std::uint64_t wanted : {1, 9, 3}) {
    LogOptions options = small_options();
    options.incarnation_min = [&] { return wanted; };
    const auto log = open(options);
    ASSERT_TRUE(log);
    EXPECT_EQ((*log)->writer().incarnation(), std::max(last + 1, wanted));
    last = (*log)->writer().incarnation();
  }
}

// The lost header was that of the newest incarnation.
TEST_F(RecoveryTest, NoIncarnationComesAgainAfterALoss) {
  write(2);
  folder.restart(true);
  write(2);
  folder.restart(true);
  erase_unit(2, 0);
  const auto log = open(accepting(3));
  ASSERT_TRUE(log) << message(log.error());
  EXPECT_EQ((*log)->writer().incarnation(), 3u);
}

/// Segments of more than a piece, which a thread reads ahead.
struct SegmentPiecesConcurrency : RecoveryTest {
  static LogOptions long_segments() {
    LogOptions options = small_options();
    options.writer.segment_bytes = std::size_t{10} << 20;
    options.writer.block_bytes_max = std::size_t{256} << 10;
    return options;
  }
  static std::string record(unsigned i) {
    return std::string(200'000, static_cast<char>('a' + i % 26));
  }
  /// So many, in some segments.
  void write_long(unsigned records) {
    const auto log = Log::open(folder, long_segments(), ReadRecords().apply());
    ASSERT_TRUE(log) << message(log.error());
    for (unsigned i = 0; i < records; ++i) {
      append((*log)->writer(), record(i));
      ASSERT_TRUE((*log)->writer().flush());
    }
    folder.crash();
  }
  static constexpr unsigned kRecords = 70;
};

TEST_F(SegmentPiecesConcurrency, WhatWasAcknowledgedIsThere) {
  write_long(kRecords);
  for (const bool ahead : {false, true}) {
    folder.read_ahead(ahead);
    const auto log = open(long_segments());
    ASSERT_TRUE(log) << message(log.error());
    ASSERT_EQ(read.texts().size(), kRecords);
    for (unsigned i = 0; i < kRecords; ++i) EXPECT_TRUE(read.texts()[i] == record(i)) << i;
    folder.crash();
  }
}

TEST_F(SegmentPiecesConcurrency, DamageInAnyOfThemIsFound) {
  write_long(kRecords);
  folder.restart(true);
  std::vector<std::uint64_t> missing;
  for (const bool ahead : {false, true}) {
    folder.read_ahead(ahead);
    for (const std::size_t unit : {std::size_t{3}, std::size_t{1500}, std::size_t{2300}}) {
      const auto whole = folder.bytes(segment_name(1));
      erase_unit(1, unit);
      const auto log = open(long_segments());
      ASSERT_FALSE(log);
      EXPECT_EQ(log.error().fault, LogFault::hole);
      missing.push_back(log.error().sequence);
      folder.put(segment_name(1), whole);
    }
  }
  ASSERT_EQ(missing.size(), 6u);
  EXPECT_TRUE(std::equal(missing.begin(), missing.begin() + 3, missing.begin() + 3));
  EXPECT_TRUE(std::ranges::is_sorted(missing.begin(), missing.begin() + 3));
}

}  // namespace
}  // namespace espalier::log
