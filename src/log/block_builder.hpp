// SPDX-License-Identifier: Apache-2.0
// Lays records out in blocks, which lie one behind the other as one write takes them.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/format.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {

class BlockBuilder {
 public:
  /// Blocks end before they are longer than this, unless one record is. `usual_bytes` of memory are
  /// kept for the next write.
  BlockBuilder(std::size_t block_bytes_max, std::size_t usual_bytes)
      : block_bytes_max_(block_bytes_max), usual_bytes_(usual_bytes) {}
  /// Takes the usual memory before the first block. Throws std::bad_alloc.
  void take_memory() { buffer_.reserve(usual_bytes_); }

  /// Begins a write at an offset of a segment; `next` is the sequence of the record that comes,
  /// `durable` the mark that its blocks will carry.
  void begin(const SegmentHeader& segment, std::uint64_t offset, std::uint64_t next,
             std::uint64_t durable);
  /// How long the write is if it ends with such a record.
  [[nodiscard]] std::size_t bytes_with(std::size_t payload) const;
  /// The next record.
  void add(std::span<const std::byte> payload);
  /// A block without records, for its mark.
  void add_mark();
  /// Requires: something was added. Returns what is to be written, valid until begin().
  [[nodiscard]] std::span<const std::byte> finish();

  [[nodiscard]] bool empty() const { return begin_ == 0 && !open_; }
  /// The sequence of the record that comes.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  void open_block();
  void close_block();

  std::size_t block_bytes_max_;
  std::size_t usual_bytes_;
  UnitBuffer buffer_;
  SegmentHeader segment_{};
  std::uint64_t offset_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t durable_ = 0;
  std::size_t begin_ = 0;  // of the open block in the buffer, or of the next one
  std::size_t used_ = 0;   // of the open block
  std::uint64_t first_ = 0;
  std::uint32_t records_ = 0;
  bool open_ = false;
};

}  // namespace espalier::log
