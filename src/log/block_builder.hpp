// SPDX-License-Identifier: Apache-2.0
// Lays records out in consecutive blocks, which one write takes.
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
  /// Closes a block before it exceeds `block_bytes_max`, unless a single record does. Keeps
  /// `usual_bytes` of memory for the next write.
  BlockBuilder(std::size_t block_bytes_max, std::size_t usual_bytes)
      : block_bytes_max_(block_bytes_max), usual_bytes_(usual_bytes) {}
  /// Allocates the usual memory before the first block. Throws std::bad_alloc.
  void take_memory() { buffer_.reserve(usual_bytes_); }

  /// Begins a write at an offset of a segment. `next` is the sequence of the next record, `durable`
  /// the mark that its blocks carry.
  void begin(const SegmentHeader& segment, std::uint64_t offset, std::uint64_t next,
             std::uint64_t durable);
  /// Length of the write if it ended with such a record.
  [[nodiscard]] std::size_t bytes_with(std::size_t payload) const;
  /// Adds the next record.
  void add(std::span<const std::byte> payload);
  /// Adds a block without records, for its mark.
  void add_mark();
  /// Requires: something was added. Returns the bytes to write, valid until begin().
  [[nodiscard]] std::span<const std::byte> finish();

  [[nodiscard]] bool empty() const { return begin_ == 0 && !open_; }
  /// The sequence of the next record.
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
