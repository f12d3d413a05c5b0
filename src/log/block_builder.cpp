// SPDX-License-Identifier: Apache-2.0
#include "log/block_builder.hpp"

#include <cstring>

#include "base/assert.hpp"

namespace espalier::log {

void BlockBuilder::begin(const SegmentHeader& segment, std::uint64_t offset, std::uint64_t next,
                         std::uint64_t durable) {
  ESPALIER_ASSERT(!open_ && offset % kUnitBytes == 0 && durable < next);
  if (buffer_.bytes().size() > usual_bytes_) buffer_.release();
  buffer_.reserve(usual_bytes_);
  segment_ = segment;
  offset_ = offset;
  next_ = next;
  durable_ = durable;
  begin_ = 0;
}

std::size_t BlockBuilder::bytes_with(std::size_t payload) const {
  const std::size_t more = record_bytes(payload);
  if (open_) {
    const std::size_t longer = base::round_up(used_ + more, kUnitBytes);
    if (longer <= block_bytes_max_) return begin_ + longer;
  }
  const std::size_t closed = begin_ + (open_ ? base::round_up(used_, kUnitBytes) : 0);
  return closed + base::round_up(sizeof(BlockHeader) + more, kUnitBytes);
}

void BlockBuilder::add(std::span<const std::byte> payload) {
  const std::size_t more = record_bytes(payload.size());
  if (open_ && used_ + more > block_bytes_max_) close_block();
  if (!open_) open_block();
  buffer_.reserve(begin_ + used_ + more);
  std::byte* const to = buffer_.bytes().data() + begin_ + used_;
  const RecordHeader header{next_, static_cast<std::uint32_t>(payload.size()), 0};
  std::memset(to + more - 8, 0, 8);  // what is behind a payload whose length is no multiple
  std::memcpy(to, &header, sizeof header);
  if (!payload.empty()) std::memcpy(to + sizeof header, payload.data(), payload.size());
  used_ += more;
  ++records_;
  ++next_;
}

void BlockBuilder::add_mark() {
  ESPALIER_ASSERT(empty());
  open_block();
}

std::span<const std::byte> BlockBuilder::finish() {
  ESPALIER_ASSERT(!empty());
  if (open_) close_block();
  return buffer_.bytes().first(begin_);
}

void BlockBuilder::open_block() {
  open_ = true;
  used_ = sizeof(BlockHeader);
  first_ = next_;
  records_ = 0;
  buffer_.reserve(begin_ + kUnitBytes);
}

void BlockBuilder::close_block() {
  const std::size_t whole = base::round_up(used_, kUnitBytes);
  buffer_.reserve(begin_ + whole);
  const std::span<std::byte> block = buffer_.bytes().subspan(begin_, whole);
  std::memset(block.data() + used_, 0, whole - used_);
  BlockHeader header{0,
                     kBlockMagic,
                     static_cast<std::uint32_t>(whole),
                     static_cast<std::uint32_t>(used_),
                     offset_ + begin_,
                     first_,
                     durable_,
                     records_,
                     block_salt(segment_)};
  std::memcpy(block.data(), &header, sizeof header);
  header.crc = checksum_of_block(segment_, block);
  std::memcpy(block.data(), &header.crc, sizeof header.crc);
  begin_ += whole;
  open_ = false;
}

}  // namespace espalier::log
