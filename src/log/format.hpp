// SPDX-License-Identifier: Apache-2.0
// Format of a log: segments, each a file, of blocks, each of records (docs/formats/log.md).
//
//   segment   | header, 4 KiB | block | block | ... | zeros, written before |
//
//   block     0     4       8       12     16       24      32        40        44     48
//             +-----+-------+-------+------+--------+-------+---------+---------+------+----
//             | crc | magic | bytes | used | offset | first | durable | records | salt | ...
//             +-----+-------+-------+------+--------+-------+---------+---------+------+----
//
//   record    0          8       12         16
//             +----------+-------+----------+---------+
//             | sequence | bytes | reserved | payload |  zeros up to a multiple of 8
//             +----------+-------+----------+---------+
//
// Readers treat all of it as untrusted bytes.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"

namespace espalier::log {

/// Unit of a disk write; O_DIRECT requires addresses, offsets and lengths to be multiples of it.
inline constexpr std::size_t kUnitBytes = 4096;
inline constexpr std::uint64_t kSegmentMagic = 0x0047'4F4C'5053'4553;  // "SESPLOG\0"
inline constexpr std::uint32_t kBlockMagic = 0x4B4C'4245;              // "EBLK"
inline constexpr std::uint32_t kFormatVersion = 1;
/// Where the blocks of a segment begin.
inline constexpr std::uint64_t kBlocksBegin = kUnitBytes;

struct SegmentHeader {
  std::uint64_t magic;           // kSegmentMagic
  std::uint32_t version;         // kFormatVersion
  std::uint32_t segment_bytes;   // of the file
  std::uint64_t node;            // number of the node
  std::uint64_t segment;         // its number, as in the name of the file
  std::uint64_t incarnation;     // how often the log was opened, this time included
  std::uint64_t first_sequence;  // of its first record; all before it were durable when it was made
  std::uint64_t salt;            // random, so that no client can make a block of this segment
  std::uint32_t after_loss;      // 1: it was begun where a loss was accepted; else 0
  std::uint32_t crc;             // CRC-32C of all before it
};
static_assert(sizeof(SegmentHeader) == 64 && offsetof(SegmentHeader, version) == 8);
static_assert(offsetof(SegmentHeader, node) == 16 && offsetof(SegmentHeader, segment) == 24);
static_assert(offsetof(SegmentHeader, incarnation) == 32);
static_assert(offsetof(SegmentHeader, first_sequence) == 40);
static_assert(offsetof(SegmentHeader, segment_bytes) == 12 && offsetof(SegmentHeader, salt) == 48);
static_assert(offsetof(SegmentHeader, after_loss) == 56 && offsetof(SegmentHeader, crc) == 60);
static_assert(std::has_unique_object_representations_v<SegmentHeader>);

struct BlockHeader {
  std::uint32_t crc;             // CRC-32C of all behind it, seeded by the segment's header
  std::uint32_t magic;           // kBlockMagic
  std::uint32_t block_bytes;     // a multiple of kUnitBytes
  std::uint32_t used_bytes;      // this header and the records; zeros are behind
  std::uint64_t offset;          // in the segment; detects misdirected writes
  std::uint64_t first_sequence;  // of its first record; if it has none, of the next one
  std::uint64_t durable;         // the highest sequence that was durable when it was written
  std::uint32_t records;
  std::uint32_t salt;  // the low half of the segment's
};
static_assert(sizeof(BlockHeader) == 48 && offsetof(BlockHeader, magic) == 4);
static_assert(offsetof(BlockHeader, block_bytes) == 8 && offsetof(BlockHeader, used_bytes) == 12);
static_assert(offsetof(BlockHeader, offset) == 16 && offsetof(BlockHeader, first_sequence) == 24);
static_assert(offsetof(BlockHeader, durable) == 32 && offsetof(BlockHeader, records) == 40);
static_assert(offsetof(BlockHeader, salt) == 44);
static_assert(std::has_unique_object_representations_v<BlockHeader>);

struct RecordHeader {
  std::uint64_t sequence;  // one more than the one before
  std::uint32_t bytes;     // of the payload
  std::uint32_t reserved;  // 0
};
static_assert(sizeof(RecordHeader) == 16 && offsetof(RecordHeader, bytes) == 8);
static_assert(offsetof(RecordHeader, reserved) == 12);
static_assert(std::has_unique_object_representations_v<RecordHeader>);

/// Size of a record in a block.
[[nodiscard]] constexpr std::size_t record_bytes(std::size_t payload) {
  return sizeof(RecordHeader) + base::round_up(payload, 8);
}

/// Where the records of a segment end: the last unit is reserved for the mark of a closed log.
[[nodiscard]] constexpr std::uint64_t records_end(std::uint64_t segment_bytes) {
  return segment_bytes - kUnitBytes;
}

/// The longest payload that a segment of this size takes.
[[nodiscard]] constexpr std::size_t payload_bytes_max(std::uint64_t segment_bytes) {
  return records_end(segment_bytes) - kBlocksBegin - sizeof(BlockHeader) - sizeof(RecordHeader) - 8;
}

[[nodiscard]] inline std::uint32_t checksum_of(const SegmentHeader& header) {
  const auto all = std::as_bytes(std::span(&header, 1));
  return base::crc32c(all.first(offsetof(SegmentHeader, crc)));
}

/// The salt in each block header of a segment.
[[nodiscard]] constexpr std::uint32_t block_salt(const SegmentHeader& segment) {
  return static_cast<std::uint32_t>(segment.salt);
}

/// The part of a block's checksum that covers its segment; crc32c_extend() continues from it.
[[nodiscard]] inline std::uint32_t begin_checksum_of_block(const SegmentHeader& segment) {
  const std::uint64_t seed[3] = {segment.segment, segment.incarnation, segment.salt};
  return base::crc32c_extend(base::kCrc32cStart, std::as_bytes(std::span(seed)));
}

/// Checksum of a whole block, except for the checksum field. It differs for other segments and for
/// other incarnations of this one.
[[nodiscard]] inline std::uint32_t checksum_of_block(const SegmentHeader& segment,
                                                     std::span<const std::byte> block) {
  const std::uint32_t state = begin_checksum_of_block(segment);
  return base::crc32c_end(base::crc32c_extend(state, block.subspan(sizeof(std::uint32_t))));
}

/// State of a segment, as the suffix of its name.
inline constexpr std::string_view kInUse = ".seg";
inline constexpr std::string_view kBeingMade = ".new";  // not in use yet
inline constexpr std::string_view kGivenUp = ".lost";   // its loss was accepted

/// A prefix, 16 hexadecimal digits, and a suffix.
[[nodiscard]] std::string numbered_name(std::string_view begin, std::uint64_t number,
                                        std::string_view end);
/// The number in such a name, if it is one.
[[nodiscard]] std::optional<std::uint64_t> number_in(std::string_view name, std::string_view begin,
                                                     std::string_view end);
/// "log-000000000000000a.seg".
[[nodiscard]] std::string segment_name(std::uint64_t segment, std::string_view end = kInUse);
/// The number in such a name with this suffix.
[[nodiscard]] std::optional<std::uint64_t> segment_of(std::string_view name, std::string_view end);

}  // namespace espalier::log
