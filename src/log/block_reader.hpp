// SPDX-License-Identifier: Apache-2.0
// Validates one header or block of untrusted bytes: whatever it returns is complete and belongs
// there.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>

#include "log/format.hpp"
#include "log/log_error.hpp"

namespace espalier::log {

/// Bounds on segments of any origin: blocks store their length in 32 bits.
inline constexpr std::uint64_t kSegmentBytesMin = 4 * kUnitBytes;
inline constexpr std::uint64_t kSegmentBytesMax = std::uint64_t{1} << 31;
/// Sequences stay below this.
inline constexpr std::uint64_t kSequenceMax = std::uint64_t{1} << 62;

/// Validates the first bytes of the segment of this number.
/// Errors: newer, other_node, header.
[[nodiscard]] std::expected<SegmentHeader, LogFault> read_segment_header(
    std::span<const std::byte> bytes, std::uint64_t node, std::uint64_t number);

class Block {
 public:
  Block(const BlockHeader& header, std::span<const std::byte> bytes)
      : header_(header), bytes_(bytes) {}
  [[nodiscard]] const BlockHeader& header() const { return header_; }
  /// The first sequence after it.
  [[nodiscard]] std::uint64_t next() const { return header_.first_sequence + header_.records; }

  /// Calls `with(sequence, payload)` for each record, until it returns false.
  template <class With>
  bool each_record(With with) const {
    std::size_t at = sizeof(BlockHeader);
    for (std::uint32_t i = 0; i < header_.records; ++i) {
      RecordHeader record{};
      std::memcpy(&record, bytes_.data() + at, sizeof record);
      if (!with(record.sequence, bytes_.subspan(at + sizeof record, record.bytes))) return false;
      at += record_bytes(record.bytes);
    }
    return true;
  }

 private:
  BlockHeader header_;
  std::span<const std::byte> bytes_;  // as many as header_.used_bytes
};

/// The header of a possible block at this offset of a segment: everything but its checksum and its
/// records is valid. Only a block of this segment has the salt, so it cannot be bytes of a client.
[[nodiscard]] std::optional<BlockHeader> read_block_header(const SegmentHeader& segment,
                                                           std::uint64_t offset,
                                                           std::span<const std::byte> rest);
/// The same from the first bytes of a rest of this length.
[[nodiscard]] std::optional<BlockHeader> read_block_header(const SegmentHeader& segment,
                                                           std::uint64_t offset,
                                                           std::span<const std::byte> bytes,
                                                           std::uint64_t rest_bytes);

/// The block at this offset of a segment, if one lies there that passes every check. `rest` is the
/// segment from there on.
[[nodiscard]] std::optional<Block> read_block(const SegmentHeader& segment, std::uint64_t offset,
                                              std::span<const std::byte> rest);

struct MarkBehind {
  std::uint64_t durable = 0;        // the highest mark of a block
  std::uint64_t checked_bytes = 0;  // bytes checksummed
};
/// Checksums cover at most so many times the bytes that are there.
inline constexpr unsigned kMarkPasses = 8;

/// Searches for blocks after an invalid one, at each unit from this offset on.
/// Cost: usually one pass over the bytes.
[[nodiscard]] MarkBehind find_mark(const SegmentHeader& segment, std::uint64_t offset,
                                   std::span<const std::byte> rest);

}  // namespace espalier::log
