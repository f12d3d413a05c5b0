// SPDX-License-Identifier: Apache-2.0
#include "log/block_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "log/block_builder.hpp"

namespace espalier::log {
namespace {

constexpr std::uint64_t kSalt = 0x0123'4567'89AB'CDEF;

SegmentHeader header_of(std::uint64_t segment, std::uint64_t incarnation) {
  SegmentHeader header{
      kSegmentMagic, kFormatVersion, 1 << 20, 1, segment, incarnation, 50, kSalt, 0, 0};
  header.crc = checksum_of(header);
  return header;
}

std::expected<SegmentHeader, LogFault> read_changed(
    const std::function<void(SegmentHeader&)>& change, bool with_checksum = true) {
  SegmentHeader header = header_of(4, 2);
  change(header);
  if (with_checksum) header.crc = checksum_of(header);
  return read_segment_header(std::as_bytes(std::span(&header, 1)), 1, 4);
}

TEST(SegmentHeaders, SayWhatIsWrong) {
  EXPECT_TRUE(read_changed([](SegmentHeader&) {}));
  const auto fault = [](auto change, bool with_checksum = true) {
    const auto read = read_changed(change, with_checksum);
    return read ? LogFault::invalid : read.error();
  };
  EXPECT_EQ(fault([](SegmentHeader& h) { h.magic ^= 1; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.version = 2; }), LogFault::newer);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.version = 2; }, false), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.version = 0; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.node = 2; }), LogFault::other_node);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.segment = 5; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.after_loss = 2; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.first_sequence = 0; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.first_sequence = kSequenceMax; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.segment_bytes += 8; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.segment_bytes = kUnitBytes; }), LogFault::header);
  EXPECT_EQ(fault([](SegmentHeader& h) { h.segment_bytes = kSegmentBytesMax + kUnitBytes; }),
            LogFault::header);
  EXPECT_EQ(read_segment_header(std::vector<std::byte>(20), 1, 4).error(), LogFault::header);
}

constexpr std::uint64_t kOffset = 3 * kUnitBytes;

std::vector<std::byte> some_block() {
  BlockBuilder builder(kUnitBytes, kUnitBytes);
  builder.begin(header_of(4, 2), kOffset, 60, 59);
  for (const std::string_view text : {"one", "", "three of them"}) {
    builder.add(std::as_bytes(std::span(text)));
  }
  const auto block = builder.finish();
  return {block.begin(), block.end()};
}

TEST(LogBlocks, AreReadAsTheyWereMade) {
  const auto bytes = some_block();
  const auto block = read_block(header_of(4, 2), kOffset, bytes);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->next(), 63u);
  EXPECT_EQ(block->header().durable, 59u);
  std::vector<std::string> texts;
  block->each_record([&](std::uint64_t sequence, std::span<const std::byte> record) {
    EXPECT_EQ(sequence, 60 + texts.size());
    texts.emplace_back(reinterpret_cast<const char*>(record.data()), record.size());
    return true;
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"one", "", "three of them"}));
}

TEST(LogBlocks, OfAnotherPlaceAreNone) {
  const auto bytes = some_block();
  EXPECT_FALSE(read_block(header_of(5, 2), kOffset, bytes));
  EXPECT_FALSE(read_block(header_of(4, 3), kOffset, bytes));
  for (const std::uint64_t other : {kSalt ^ 1, kSalt ^ std::uint64_t{1} << 63}) {
    SegmentHeader salted = header_of(4, 2);
    salted.salt = other;
    EXPECT_FALSE(read_block(salted, kOffset, bytes));
  }
  EXPECT_FALSE(read_block(header_of(4, 2), kOffset + kUnitBytes, bytes));
  EXPECT_FALSE(read_block(header_of(4, 2), kOffset, std::span(bytes).first(kUnitBytes - 1)));
  EXPECT_FALSE(read_block(header_of(4, 2), kOffset, {}));
}

TEST(LogBlocks, AnyBitThatChangesIsSeen) {
  auto bytes = some_block();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ASSERT_FALSE(read_block(header_of(4, 2), kOffset, bytes)) << bit;
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
  }
}

TEST(LogBlocks, WhatIsWrongIsSeenWithARightChecksumToo) {
  const auto is_read = [](std::size_t at, auto value) {
    auto bytes = some_block();
    std::memcpy(bytes.data() + at, &value, sizeof value);
    const std::uint32_t crc = checksum_of_block(header_of(4, 2), bytes);
    std::memcpy(bytes.data(), &crc, sizeof crc);
    return read_block(header_of(4, 2), kOffset, bytes).has_value();
  };
  EXPECT_TRUE(is_read(offsetof(BlockHeader, durable), std::uint64_t{58}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, durable), std::uint64_t{60}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, used_bytes), std::uint32_t{48}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, used_bytes), std::uint32_t{40}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, used_bytes), ~std::uint32_t{0}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, block_bytes), std::uint32_t{0}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, records), std::uint32_t{2}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, records), ~std::uint32_t{0}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, salt), std::uint32_t{1}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, first_sequence), std::uint64_t{61}));
  EXPECT_FALSE(is_read(offsetof(BlockHeader, first_sequence), std::uint64_t{49}));
  EXPECT_FALSE(is_read(48 + offsetof(RecordHeader, bytes), ~std::uint32_t{0}));
  EXPECT_FALSE(is_read(48 + offsetof(RecordHeader, reserved), std::uint32_t{1}));
  EXPECT_FALSE(is_read(48 + offsetof(RecordHeader, sequence), std::uint64_t{61}));
}

/// Bytes of which each unit is the beginning of a block up to the end, but for the checksum.
std::vector<std::byte> units_like_blocks(const SegmentHeader& segment, std::size_t units) {
  std::vector<std::byte> bytes(units * kUnitBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kUnitBytes) {
    const auto whole = static_cast<std::uint32_t>(bytes.size() - at);
    const BlockHeader header{0,   kBlockMagic,        whole, whole, kOffset + at, 60, 59,
                             100, block_salt(segment)};
    std::memcpy(bytes.data() + at, &header, sizeof header);
  }
  return bytes;
}

TEST(MarksBehind, AreFoundWithABoundedCost) {
  const SegmentHeader segment = header_of(4, 2);
  const auto bytes = units_like_blocks(segment, 100);
  const MarkBehind found = find_mark(segment, kOffset, bytes);
  EXPECT_EQ(found.durable, 0u);
  EXPECT_LE(found.checked_bytes, kMarkPasses * bytes.size());
  SegmentHeader other = segment;
  other.salt ^= 1;
  EXPECT_EQ(find_mark(other, kOffset, bytes).checked_bytes, 0u);
}

TEST(MarksBehind, AreFoundBehindABlockThatDamageMadeLonger) {
  auto bytes = some_block();
  bytes.insert(bytes.begin(), 2 * kUnitBytes, std::byte{0});
  const auto damaged = units_like_blocks(header_of(4, 2), 3);
  std::ranges::copy(std::span(damaged).first(kUnitBytes), bytes.begin());
  const std::uint64_t begin = kOffset - 2 * kUnitBytes;
  std::memcpy(bytes.data() + offsetof(BlockHeader, offset), &begin, sizeof begin);
  EXPECT_EQ(find_mark(header_of(4, 2), begin, bytes).durable, 59u);
}

// What lies within a block are records, which a client may have made.
TEST(MarksBehind, AreNotSoughtWithinABlock) {
  const SegmentHeader segment = header_of(4, 2);
  BlockBuilder inner(kUnitBytes, kUnitBytes);
  inner.begin(segment, kOffset + kUnitBytes, 90, 80);
  inner.add_mark();
  std::vector<std::byte> record(2 * kUnitBytes - sizeof(BlockHeader) - sizeof(RecordHeader));
  std::ranges::copy(inner.finish(), record.end() - kUnitBytes);
  BlockBuilder outer(4 * kUnitBytes, 4 * kUnitBytes);
  outer.begin(segment, kOffset, 60, 59);
  outer.add(record);
  EXPECT_EQ(find_mark(segment, kOffset, outer.finish()).durable, 59u);
}

}  // namespace
}  // namespace espalier::log
