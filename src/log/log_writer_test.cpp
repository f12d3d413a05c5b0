// SPDX-License-Identifier: Apache-2.0
#include "log/log_writer.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "log/testing/small_log.hpp"

namespace espalier::log {
namespace {

struct LogWriterTest : ::testing::Test {
  void open(const LogOptions& options = small_options()) {
    log.reset();
    read = ReadRecords();
    auto opened = Log::open(folder, options, read.apply());
    ASSERT_TRUE(opened) << message(opened.error());
    log = std::move(*opened);
  }
  LogWriter& writer() { return log->writer(); }

  FaultyFolder folder{1};
  ReadRecords read;
  std::unique_ptr<Log> log;
};

TEST_F(LogWriterTest, OneFlushTakesAllWhoWait) {
  open();
  for (int i = 0; i < 100; ++i) append(writer(), "x");
  EXPECT_EQ(writer().durable(), 0u);
  ASSERT_TRUE(writer().flush());
  EXPECT_EQ(writer().durable(), 100u);
  EXPECT_EQ(writer().room().held_bytes(), 0u);
  ASSERT_TRUE(writer().flush());  // nothing
  open();
  EXPECT_EQ(read.texts(), std::vector<std::string>(100, "x"));
}

TEST_F(LogWriterTest, SegmentsFollowEachOther) {
  open();
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) {
    texts.push_back(std::string(static_cast<std::size_t>(i * 97), static_cast<char>('a' + i % 26)));
    append(writer(), texts.back());
    if (i % 7 != 0) continue;
    ASSERT_TRUE(writer().flush());
  }
  ASSERT_TRUE(writer().flush());
  EXPECT_GT(writer().segments().count(), 4u);
  open();
  EXPECT_EQ(read.texts(), texts);
}

TEST_F(LogWriterTest, TheLongestRecordTakesASegment) {
  open();
  const std::size_t most = payload_bytes_max(kSmallSegment);
  EXPECT_EQ(writer().reserve(most + 1).error().code, Code::value_too_long);
  const std::string text(most, 'x');
  append(writer(), "before");
  append(writer(), text);
  append(writer(), text);
  append(writer(), "after");
  ASSERT_TRUE(writer().flush());
  open();
  EXPECT_EQ(read.texts(), (std::vector<std::string>{"before", text, text, "after"}));
}

TEST_F(LogWriterTest, RoomHasABound) {
  LogOptions options = small_options();
  options.writer.held_bytes_max = 1000;
  open(options);
  const auto first = writer().reserve(600);
  ASSERT_TRUE(first);
  EXPECT_EQ(writer().reserve(600).error().code, Code::busy);
  writer().give_back(*first);
  append(writer(), std::string(600, 'x'));
  EXPECT_EQ(writer().reserve(600).error().code, Code::busy);
  ASSERT_TRUE(writer().flush());
  append(writer(), std::string(2000, 'x'));  // alone
  ASSERT_TRUE(writer().flush());
}

// Writers that found no room begin anew when the mark has risen, and need not wait for more.
TEST_F(LogWriterTest, RoomIsThereOnceWhatHadItIsDurable) {
  LogOptions options = small_options();
  options.writer.held_bytes_max = 1000;
  open(options);
  append(writer(), std::string(600, 'x'));
  ASSERT_EQ(writer().reserve(600).error().code, Code::busy);
  Result<std::span<std::byte>> room = fail(Code::invalid);
  writer().acknowledgements().when_durable(1,
                                           [&](const LogError*) { room = writer().reserve(600); });
  ASSERT_TRUE(writer().flush());
  ASSERT_TRUE(room) << message(room.error());
  writer().give_back(*room);
}

TEST_F(LogWriterTest, TheLogHasABound) {
  LogOptions options = small_options();
  options.writer.segments_max = 2;
  open(options);
  while (writer().segments().count() < 3) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  EXPECT_EQ(writer().reserve(1).error().code, Code::busy);
  EXPECT_EQ(writer().room().held_bytes(), 0u);
  ASSERT_TRUE(writer().remove_below(writer().durable()));
  EXPECT_EQ(writer().segments().count(), 1u);
  append(writer(), "x");
  ASSERT_TRUE(writer().flush());
}

// Also where the flusher begins a segment meanwhile.
TEST_F(LogWriterTest, ALiftedBoundStaysLifted) {
  LogOptions options = small_options();
  options.writer.segments_max = 1;
  open(options);
  while (writer().segments().count() < 2) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  EXPECT_TRUE(writer().is_at_bound());
  writer().lift_bound();
  while (writer().segments().count() < 4) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  EXPECT_FALSE(writer().is_at_bound());
  writer().keep_bound();
  EXPECT_EQ(writer().reserve(1).error().code, Code::busy);
}

TEST_F(LogWriterTest, OnlyWholeSegmentsBelowAreRemoved) {
  open();
  for (int i = 0; i < 20; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{1, 1}, {2, 8}, {3, 15}}));
  ASSERT_TRUE(writer().remove_below(14));
  EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{2, 8}, {3, 15}}));
  ASSERT_TRUE(writer().remove_below(1000));  // the current one stays
  EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{3, 15}}));
  LogOptions options = small_options();
  options.recovery.from = 15;
  open(options);
  EXPECT_EQ(read.texts().size(), 6u);
}

TEST_F(LogWriterTest, ARemovalThatIsNotDurableHoldsBackTheNext) {
  open();
  for (int i = 0; i < 20; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  folder.set({.folder_fails = 1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(writer().remove_below(20).error(),
              (LogError{{Code::system, 0, EIO}, LogFault::system, FileName("."), 0, 20}));
    EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{2, 8}, {3, 15}}));
  }
  folder.set({});
  ASSERT_TRUE(writer().remove_below(20));
  EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{3, 15}}));
}

TEST_F(LogWriterTest, AfterAnErrorNothingIsAcknowledged) {
  open();
  append(writer(), "before");
  ASSERT_TRUE(writer().flush());
  folder.set({.fails = 1});
  append(writer(), "lost");
  std::vector<std::string> heard;
  writer().acknowledgements().when_durable(2, [&](const LogError* error) {
    heard.push_back(error == nullptr ? "durable" : message(*error));
  });
  const auto failed = writer().flush();
  ASSERT_FALSE(failed);
  EXPECT_EQ(
      failed.error(),
      (LogError{
          {Code::system, 0, EIO}, LogFault::system, FileName(segment_name(1)), 2 * kUnitBytes, 2}));
  EXPECT_EQ(heard, std::vector<std::string>{message(failed.error())});
  folder.set({});
  EXPECT_EQ(writer().flush().error(), failed.error());
  EXPECT_EQ(writer().reserve(1).error(), failed.error().error);
  EXPECT_EQ(writer().acknowledgements().wait(2).error(), failed.error());
  EXPECT_TRUE(writer().acknowledgements().wait(1));
  EXPECT_EQ(writer().durable(), 1u);
  EXPECT_EQ(log->close().error(), failed.error());
}

TEST_F(LogWriterTest, RoomThatWasGivenBeforeAnErrorIsTaken) {
  open();
  const auto room = writer().reserve(5);
  folder.set({.fails = 1});
  append(writer(), "lost");
  ASSERT_FALSE(writer().flush());
  EXPECT_EQ(writer().append(*room), 2u);
  EXPECT_FALSE(writer().flush());
  EXPECT_EQ(writer().room().held_bytes(), 0u);
}

TEST_F(LogWriterTest, ShortWritesGoOnOrAreAnError) {
  folder.set({.shortens = 0.5});
  open();
  unsigned errors = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 5; ++i) append(writer(), std::string(2000, 'x'));
    const auto flushed = writer().flush();
    if (flushed) continue;
    ++errors;
    EXPECT_EQ(flushed.error().fault, LogFault::short_write);
    EXPECT_EQ(flushed.error().sequence, writer().durable() + 1);
    const std::uint64_t durable = writer().durable();
    folder.set({});  // making a segment is a write, too
    open();
    EXPECT_GE(read.texts().size(), durable);
    folder.set({.shortens = 0.5});
  }
  EXPECT_GT(errors, 0u);
}

// Several writes under way: a test has them end in the order it wants.
struct SeveralWritesTest : LogWriterTest {
  void begin(int count) {
    for (int i = 0; i < count; ++i) {
      append(writer(), std::string(1, static_cast<char>('a' + i)));
      writes.push_back(std::make_unique<PendingWrite>(kUnitBytes, kUnitBytes));
      ASSERT_EQ(writer().begin(*writes.back()), WriteBegun::begun);
    }
  }
  void carry_out_and_end(std::size_t number) {
    writer().carry_out(*writes[number]);
    writer().end(*writes[number]);
  }
  std::vector<std::unique_ptr<PendingWrite>> writes;
};

TEST_F(SeveralWritesTest, AreAcknowledgedInOrder) {
  open();
  begin(4);
  PendingWrite fifth(kUnitBytes, kUnitBytes);
  EXPECT_EQ(writer().begin(fifth), WriteBegun::nothing);
  for (const std::size_t number : {3U, 1U}) carry_out_and_end(number);
  EXPECT_EQ(writer().durable(), 0u);
  EXPECT_GT(writer().room().held_bytes(), 0u);
  carry_out_and_end(0);
  EXPECT_EQ(writer().durable(), 2u);
  carry_out_and_end(2);
  EXPECT_EQ(writer().durable(), 4u);
  EXPECT_EQ(writer().room().held_bytes(), 0u);
  open();
  EXPECT_EQ(read.texts(), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_F(SeveralWritesTest, NothingIsAcknowledgedOnceOneHasFailed) {
  open();
  begin(3);
  carry_out_and_end(0);
  writer().carry_out(*writes[1]);
  folder.set({.fails = 1});
  carry_out_and_end(2);
  const LogError expected{
      {Code::system, 0, EIO}, LogFault::system, FileName(segment_name(1)), 3 * kUnitBytes, 2};
  EXPECT_EQ(writer().acknowledgements().error(), expected);
  writer().end(*writes[1]);  // the disk has it, and no waiter is completed
  EXPECT_EQ(writer().durable(), 1u);
  EXPECT_EQ(writer().room().held_bytes(), 0u);
  folder.set({});
  EXPECT_EQ(writer().flush().error(), expected);
}

TEST_F(SeveralWritesTest, AHoleAmongThemIsNoDamage) {
  open();
  begin(3);
  carry_out_and_end(2);
  carry_out_and_end(1);
  folder.crash();
  writer().carry_out(*writes[0]);
  writer().end(*writes[0]);
  log.reset();
  folder.restart(true);
  open();
  EXPECT_EQ(read.texts(), std::vector<std::string>());
  EXPECT_TRUE(log->recovered().cut);
}

TEST_F(SeveralWritesTest, AllOfASegmentEndBeforeTheNextBegins) {
  open();
  begin(4);
  for (const std::size_t number : {0U, 1U, 2U}) carry_out_and_end(number);
  writes.front() = std::make_unique<PendingWrite>(kUnitBytes, kUnitBytes);
  append(writer(), std::string(4 * kUnitBytes, 'x'));
  EXPECT_EQ(writer().begin(*writes.front()), WriteBegun::later);
  carry_out_and_end(3);
  EXPECT_EQ(writer().begin(*writes.front()), WriteBegun::begun);
  EXPECT_EQ(writer().segments().segments(), (std::vector<SegmentRange>{{1, 1}, {2, 5}}));
  carry_out_and_end(0);
  EXPECT_EQ(writer().durable(), 5u);
}

// Commits that have come together gather until no write is under way.
TEST_F(SeveralWritesTest, WhatComesBesideAGroupWaitsForItsEnd) {
  open();
  append(writer(), "x");
  begin(1);  // of two records
  std::atomic<bool> woken = false;
  std::thread waiting([&] {
    EXPECT_TRUE(writer().queue().wait());
    woken = true;
  });
  append(writer(), "y");
  writer().carry_out(*writes[0]);
  EXPECT_FALSE(woken);
  writer().end(*writes[0]);
  waiting.join();
  ASSERT_TRUE(writer().flush());
}

TEST_F(SeveralWritesTest, AreBesideEachOtherWhereRecordsComeApart) {
  open();
  append(writer(), "x");
  append(writer(), "x");
  ASSERT_TRUE(writer().flush());
  for (int i = 0; i < 4; ++i) {  // a group was among the last few until then
    append(writer(), "y");
    ASSERT_TRUE(writer().flush());
  }
  begin(1);
  append(writer(), "z");
  std::binary_semaphore woken(0);
  std::thread waiting([&] {
    EXPECT_TRUE(writer().queue().wait());
    woken.release();
  });
  EXPECT_TRUE(woken.try_acquire_for(std::chrono::seconds(60)));
  carry_out_and_end(0);
  waiting.join();
  ASSERT_TRUE(writer().flush());
}

TEST_F(SeveralWritesTest, AreOneAtATimeWhereTheFileTakesOne) {
  folder.set({.cached = true});
  open();
  begin(1);
  append(writer(), "next");
  PendingWrite next(kUnitBytes, kUnitBytes);
  EXPECT_EQ(writer().begin(next), WriteBegun::later);
  carry_out_and_end(0);
  EXPECT_EQ(writer().begin(next), WriteBegun::begun);
  writer().carry_out(next);
  writer().end(next);
  EXPECT_EQ(writer().durable(), 2u);
}

TEST_F(LogWriterTest, AFullDiskStopsIt) {
  folder.set({.bytes_max = 2 * kSmallSegment});
  open();
  LogResult<void> flushed;
  while (flushed) {
    append(writer(), "x");
    flushed = writer().flush();
  }
  EXPECT_EQ(flushed.error().error, (Error{Code::system, 0, ENOSPC}));
  EXPECT_EQ(flushed.error().file, segment_name(3, kBeingMade));
  EXPECT_EQ(flushed.error().sequence, writer().durable() + 1);
  EXPECT_EQ(writer().durable(), 14u);
  folder.set({});
  open();
  EXPECT_EQ(read.texts().size(), 14u);
}

TEST_F(LogWriterTest, MemoryThatRunsOutStopsIt) {
  LogOptions options = small_options();
  options.writer.segments_max = 1000;
  for (std::uint64_t operation = 1;; ++operation) {
    ASSERT_LT(operation, 100u);
    open(options);
    const std::uint64_t before = writer().durable();
    folder.memory_ends_in(operation);
    LogResult<void> flushed;
    for (int i = 0; flushed && i < 10; ++i) {
      append(writer(), "x");
      flushed = writer().flush();
    }
    const std::uint64_t durable = writer().durable();
    if (!flushed) {
      EXPECT_EQ(
          flushed.error(),
          (LogError{
              {Code::out_of_memory, 0, 0}, LogFault::no_memory, FileName("."), 0, durable + 1}));
      EXPECT_EQ(writer().reserve(1).error().code, Code::out_of_memory);
    }
    folder.memory_ends_in(0);
    open(options);
    EXPECT_GE(read.texts().size(), durable);
    if (durable == before + 10) return;
  }
}

TEST_F(LogWriterTest, ASpareThatFindsNoSpaceIsMadeLater) {
  open();
  folder.set({.bytes_max = kSmallSegment});
  for (int i = 0; i < 5; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  EXPECT_EQ(writer().prepare_spare().error().error, (Error{Code::system, 0, ENOSPC}));
  folder.set({});
  for (int i = 0; i < 2; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
  }
  ASSERT_TRUE(writer().prepare_spare());
  folder.set({.bytes_max = 0});
  for (int i = 0; i < 5; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());  // by the spare
  }
  EXPECT_EQ(writer().segments().count(), 2u);
}

TEST_F(LogWriterTest, AFullDiskIsNotTriedAtEachFlush) {
  LogOptions options = small_options();
  options.writer.segment_bytes = 100 * kUnitBytes;
  open(options);
  folder.set({.bytes_max = options.writer.segment_bytes});
  const std::uint64_t before = folder.fills();
  unsigned failed = 0;
  for (int i = 0; i < 95; ++i) {
    append(writer(), "x");
    ASSERT_TRUE(writer().flush());
    if (!writer().prepare_spare()) ++failed;
  }
  EXPECT_EQ(failed, 4u);  // of 45 flushes in the half behind
  EXPECT_EQ(folder.fills() - before, failed);
}

TEST_F(LogWriterTest, IsClosedWithoutAnotherSegment) {
  open();
  folder.set({.bytes_max = kSmallSegment});
  for (int i = 0; i < 7; ++i) append(writer(), std::string(3000, 'x'));
  ASSERT_TRUE(writer().flush());
  EXPECT_EQ(writer().segments().count(), 1u);
  EXPECT_TRUE(log->close());
  folder.set({});
  folder.flip(segment_name(1), 7 * kUnitBytes + 100, 0);  // the mark shows that it was there
  log.reset();
  EXPECT_EQ(Log::open(folder, small_options(), read.apply()).error().fault, LogFault::hole);
}

TEST_F(LogWriterTest, IsASinkOfRecordsOfEffects) {
  open();
  auto room = catalog::RedoRoom::reserve(&writer(), 3);
  ASSERT_TRUE(room);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(room->bytes().data()) % 8, 0u);
  std::memcpy(room->bytes().data(), "abc", 3);
  room->hand_over();
  {
    const auto unused = catalog::RedoRoom::reserve(&writer(), 100);
  }
  ASSERT_TRUE(writer().flush());
  EXPECT_EQ(writer().durable(), 1u);
  open();
  EXPECT_EQ(read.texts(), std::vector<std::string>{"abc"});
}

}  // namespace
}  // namespace espalier::log
