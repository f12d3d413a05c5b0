// SPDX-License-Identifier: Apache-2.0
// Format of a checkpoint: records of a store's contents, in a file beside the log's segments
// (docs/formats/checkpoint.md).
//
//   | header, 4 KiB, written last | block | block | ... | zeros |
//
//   0       8         12         16      24       32         40        48        56
//   +-------+---------+----------+-------+--------+----------+---------+---------+------------
//   | magic | version | reserved | store | number | sequence | through | records | blocks end
//   +-------+---------+----------+-------+--------+----------+---------+---------+------------
//     64     72            80         84    88
//   +------+-------------+----------+-----+
//   | salt | incarnation | reserved | crc |
//   +------+-------------+----------+-----+
//
// Blocks are those of a segment (log/format.hpp); their records are numbered from 1.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/crc32c.hpp"
#include "log/format.hpp"

namespace espalier::log {

inline constexpr std::uint64_t kCheckpointMagic = 0x0050'4B43'5053'4553;  // "SESPCKP\0"
inline constexpr std::uint32_t kCheckpointVersion = 1;
/// Longest block, as of a segment.
inline constexpr std::uint64_t kCheckpointBlockMax = std::uint64_t{1} << 31;

struct CheckpointHeader {
  std::uint64_t magic;         // kCheckpointMagic
  std::uint32_t version;       // kCheckpointVersion
  std::uint32_t reserved;      // 0
  std::uint64_t store;         // the store's number, as the node of a segment
  std::uint64_t number;        // as in the name of the file
  std::uint64_t sequence;      // replay begins with this record of the log
  std::uint64_t through;       // the log was durable up to here when this was written
  std::uint64_t records;       // their number
  std::uint64_t blocks_end;    // where its blocks end; later bytes are ignored
  std::uint64_t salt;          // random
  std::uint64_t incarnation;   // of the log that was open when it was made
  std::uint32_t reserved_too;  // 0
  std::uint32_t crc;           // CRC-32C of all before it
};
static_assert(sizeof(CheckpointHeader) == 88 && offsetof(CheckpointHeader, version) == 8);
static_assert(offsetof(CheckpointHeader, reserved) == 12 &&
              offsetof(CheckpointHeader, store) == 16);
static_assert(offsetof(CheckpointHeader, number) == 24 &&
              offsetof(CheckpointHeader, sequence) == 32);
static_assert(offsetof(CheckpointHeader, through) == 40 &&
              offsetof(CheckpointHeader, records) == 48);
static_assert(offsetof(CheckpointHeader, blocks_end) == 56 &&
              offsetof(CheckpointHeader, salt) == 64);
static_assert(offsetof(CheckpointHeader, incarnation) == 72);
static_assert(offsetof(CheckpointHeader, reserved_too) == 80 &&
              offsetof(CheckpointHeader, crc) == 84);
static_assert(std::has_unique_object_representations_v<CheckpointHeader>);

[[nodiscard]] inline std::uint32_t checksum_of(const CheckpointHeader& header) {
  const auto all = std::as_bytes(std::span(&header, 1));
  return base::crc32c(all.first(offsetof(CheckpointHeader, crc)));
}

/// The segment header under which a checkpoint's blocks are written and read: its number, first
/// sequence and salt enter their checksums.
[[nodiscard]] constexpr SegmentHeader as_segment(const CheckpointHeader& header) {
  SegmentHeader segment{};
  segment.segment = header.number;
  segment.incarnation = header.sequence;
  segment.first_sequence = 1;
  segment.salt = header.salt;
  return segment;
}

/// File names of checkpoints: "checkpoint-000000000000000a.end" once complete.
inline constexpr std::string_view kCheckpointBegin = "checkpoint-";
inline constexpr std::string_view kWhole = ".end";  // and kBeingMade before

}  // namespace espalier::log
