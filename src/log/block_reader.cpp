// SPDX-License-Identifier: Apache-2.0
#include "log/block_reader.hpp"

#include <algorithm>

#include "log/planted_log_bugs.hpp"

namespace espalier::log {
namespace {

/// Whether the records are all there, in sequence, and fill what the block says it has used.
bool records_are_right(const BlockHeader& header, std::span<const std::byte> block) {
  std::size_t at = sizeof header;
  for (std::uint32_t i = 0; i < header.records; ++i) {
    RecordHeader record{};
    if (header.used_bytes - at < sizeof record) return false;
    std::memcpy(&record, block.data() + at, sizeof record);
    if (record.sequence != header.first_sequence + i || record.reserved != 0) return false;
    if (header.used_bytes - at < record_bytes(record.bytes)) return false;
    at += record_bytes(record.bytes);
  }
  return at == header.used_bytes;
}

}  // namespace

std::expected<SegmentHeader, LogFault> read_segment_header(std::span<const std::byte> bytes,
                                                           std::uint64_t node,
                                                           std::uint64_t number) {
  SegmentHeader header{};
  if (bytes.size() < sizeof header) return std::unexpected(LogFault::header);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kSegmentMagic) return std::unexpected(LogFault::header);
  // The checksum is where it is in all versions, so that damage is not taken for a later one.
  if (header.crc != checksum_of(header)) return std::unexpected(LogFault::header);
  if (header.version > kFormatVersion) return std::unexpected(LogFault::newer);
  if (header.version != kFormatVersion) return std::unexpected(LogFault::header);
  if (header.node != node) return std::unexpected(LogFault::other_node);
  const bool right = header.segment == number && header.after_loss <= 1 &&
                     header.segment_bytes % kUnitBytes == 0 &&
                     header.segment_bytes >= kSegmentBytesMin &&
                     header.segment_bytes <= kSegmentBytesMax && header.first_sequence != 0 &&
                     header.first_sequence < kSequenceMax && header.incarnation < kSequenceMax;
  if (!right) return std::unexpected(LogFault::header);
  return header;
}

std::optional<BlockHeader> read_block_header(const SegmentHeader& segment, std::uint64_t offset,
                                             std::span<const std::byte> rest) {
  return read_block_header(segment, offset, rest, rest.size());
}

std::optional<BlockHeader> read_block_header(const SegmentHeader& segment, std::uint64_t offset,
                                             std::span<const std::byte> bytes,
                                             std::uint64_t rest_bytes) {
  BlockHeader header{};
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  const bool right = header.magic == kBlockMagic && header.offset == offset &&
                     header.salt == block_salt(segment) && header.block_bytes % kUnitBytes == 0 &&
                     header.block_bytes <= rest_bytes && header.used_bytes >= sizeof header &&
                     header.used_bytes <= header.block_bytes &&
                     header.first_sequence >= segment.first_sequence &&
                     header.first_sequence < kSequenceMax && header.durable < header.first_sequence;
  if (!right) return std::nullopt;
  return header;
}

std::optional<Block> read_block(const SegmentHeader& segment, std::uint64_t offset,
                                std::span<const std::byte> rest) {
  const auto header = read_block_header(segment, offset, rest);
  if (!header) return std::nullopt;
  const std::span<const std::byte> block = rest.first(header->block_bytes);
  const std::uint32_t crc = checksum_of_block(segment, block);
  if (crc != header->crc && !planted(Bug::checksum_ignored)) return std::nullopt;
  if (!records_are_right(*header, block)) return std::nullopt;
  return Block(*header, block.first(header->used_bytes));
}

MarkBehind find_mark(const SegmentHeader& segment, std::uint64_t offset,
                     std::span<const std::byte> rest) {
  // Blocks do not overlap, so those that were written take one pass; the others are for headers
  // that damage has made longer.
  std::uint64_t left = kMarkPasses * std::uint64_t{rest.size()};
  MarkBehind found;
  std::size_t step = 0;
  for (std::size_t at = 0; at < rest.size(); at += step) {
    step = kUnitBytes;
    const auto header = read_block_header(segment, offset + at, rest.subspan(at));
    if (!header || header->block_bytes > left) continue;
    left -= header->block_bytes;
    found.checked_bytes += header->block_bytes;
    if (!read_block(segment, offset + at, rest.subspan(at))) continue;
    found.durable = std::max(found.durable, header->durable);
    step = header->block_bytes;  // what is in it are records
  }
  return found;
}

}  // namespace espalier::log
