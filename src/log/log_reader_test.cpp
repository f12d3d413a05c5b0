// SPDX-License-Identifier: Apache-2.0
// Records of a log that is written meanwhile, out of its segments.
#include "log/log_reader.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "log/log.hpp"
#include "log/posix_folder.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kReadNode = 17;

class LogReaderTest : public ::testing::Test {
 protected:
  void open() {
    log_.reset();
    LogOptions options;
    options.recovery.node = kReadNode;
    options.writer.segment_bytes = 64 * kUnitBytes;
    options.threads = false;
    auto opened = Log::open(
        folder_, options, [](std::uint64_t, std::span<const std::byte>) { return Result<void>(); });
    ASSERT_TRUE(opened) << message(opened.error());
    log_ = std::move(*opened);
    reader_ = std::make_unique<LogReader>(folder_, kReadNode, log_->writer().segments());
  }
  static std::string record_of(std::uint64_t sequence, std::size_t bytes) {
    return std::to_string(sequence) + std::string(bytes, 'r');
  }
  /// Adds so many records in one flush.
  void add(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string text = record_of(written_.size() + 1, bytes);
      const auto room = log_->writer().reserve(text.size());
      ASSERT_TRUE(room);
      std::memcpy(room->data(), text.data(), text.size());
      log_->writer().append(*room);
      written_.push_back(text);
    }
    ASSERT_TRUE(log_->writer().flush());
  }
  /// How many a call takes that is to take no more than `most`; all must be those that were added.
  std::uint64_t read(std::uint64_t first, std::uint64_t last, std::uint64_t most) {
    std::uint64_t expected = first;
    const auto taken =
        reader_->read(first, last, [&](std::uint64_t sequence, std::span<const std::byte> record) {
          if (expected - first == most) return false;
          EXPECT_EQ(sequence, expected++);
          const std::string_view text(reinterpret_cast<const char*>(record.data()), record.size());
          EXPECT_TRUE(text == written_[sequence - 1]) << sequence;
          return true;
        });
    EXPECT_TRUE(taken) << (taken ? "" : message(taken.error()));
    EXPECT_EQ(taken.value_or(0), expected - 1);
    return expected - first;
  }

  base::TemporaryFolder path_;
  PosixFolder folder_{path_.path().string()};
  std::unique_ptr<Log> log_;
  std::unique_ptr<LogReader> reader_;
  std::vector<std::string> written_;
};

TEST_F(LogReaderTest, ReadsFromAnyRecordOnInPiecesOfAnySize) {
  open();
  for (int i = 0; i < 20; ++i) add(7, 5000);  // over several segments
  add(1, 150'000);                            // a block of its own
  for (int i = 0; i < 3; ++i) add(5, 10);
  ASSERT_GT(log_->writer().segments().count(), 3u);
  const std::uint64_t last = written_.size();
  for (std::uint64_t first = 1; first <= last; ++first) {
    EXPECT_EQ(read(first, last, ~std::uint64_t{0}), last - first + 1);
    EXPECT_EQ(read(first, first, 5), 1u);  // and back again
  }
  for (const std::uint64_t most : {1, 3, 7, 8, 50}) {
    for (std::uint64_t first = 1; first <= last;) {
      const std::uint64_t got = read(first, last, most);
      ASSERT_GT(got, 0u);
      first += got;
    }
  }
}

TEST_F(LogReaderTest, GoesOnWhileTheLogIsWritten) {
  open();
  std::uint64_t next = 1;
  for (int i = 0; i < 60; ++i) {
    add(static_cast<std::size_t>(1 + i % 5), 4000);
    next += read(next, written_.size(), ~std::uint64_t{0});
    EXPECT_EQ(next, written_.size() + 1);
    EXPECT_EQ(read(next, next + 3, 4), 0u);  // which are not there yet
  }
}

TEST_F(LogReaderTest, WhatWasRemovedIsMissing) {
  open();
  for (int i = 0; i < 40; ++i) add(7, 5000);
  const auto segments = log_->writer().segments().segments();
  ASSERT_GT(segments.size(), 3u);
  EXPECT_EQ(read(1, 3, 3), 3u);
  ASSERT_TRUE(log_->writer().remove_below(segments[2].first_sequence));
  EXPECT_EQ(read(segments[1].first_sequence, written_.size(), 1), 0u);
  EXPECT_EQ(read(segments[2].first_sequence, written_.size(), 9), 9u);
}

// What a segment has behind where the next one begins was cut, and is no record of the log.
TEST_F(LogReaderTest, GoesOnBehindALogThatWasOpenedAgain) {
  for (int i = 0; i < 4; ++i) {
    open();
    add(9, 3000);
    add(9, 3000);
  }
  EXPECT_EQ(read(1, written_.size(), ~std::uint64_t{0}), written_.size());
  for (std::uint64_t first = 1; first <= written_.size(); first += 5) {
    EXPECT_GT(read(first, written_.size(), 5), 0u);
  }
}

TEST_F(LogReaderTest, DamageIsTold) {
  open();
  add(3, 100);
  const std::string name = segment_name(log_->writer().segments().segments().front().number);
  {
    auto file = folder_.open(name);
    ASSERT_TRUE(file);
    UnitBuffer unit;
    unit.reserve(kUnitBytes);
    ASSERT_TRUE((*file)->read(kBlocksBegin, unit.bytes().first(kUnitBytes)));
    unit.bytes()[200] ^= std::byte{1};
    ASSERT_TRUE((*file)->write(kBlocksBegin, unit.bytes().first(kUnitBytes)));
  }
  const auto taken = reader_->read(1, 3, [](std::uint64_t, std::span<const std::byte>) {
    ADD_FAILURE() << "a record of a damaged block";
    return true;
  });
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().fault, LogFault::hole);
}

}  // namespace
}  // namespace espalier::log
