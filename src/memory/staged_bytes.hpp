// SPDX-License-Identifier: Apache-2.0
// Copies bytes into a buffer of their own, piece by piece, before it is published: no other code
// knows of the buffer meanwhile. The kind writes the bytes around them, and publishes the buffer
// when all are there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::memory {

/// Releases the buffer when destroyed, unless it was taken.
/// Thread: one at a time, any. Requires: the pool, and the bytes that it copies, outlive it.
class StagedBytes {
 public:
  /// An allocated buffer; the bytes begin `behind` its begin, and the first `copied` are there.
  StagedBytes(BufferPool& pool, SizeClass cls, std::uint64_t offset, std::size_t behind,
              std::string_view bytes, std::size_t copied = 0)
      : pool_(&pool), offset_(offset), cls_(cls), behind_(behind), bytes_(bytes), copied_(copied) {}
  StagedBytes(StagedBytes&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        offset_(other.offset_),
        cls_(other.cls_),
        behind_(other.behind_),
        bytes_(other.bytes_),
        copied_(other.copied_) {}
  StagedBytes& operator=(StagedBytes&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(offset_, other.offset_);
    std::swap(cls_, other.cls_);
    std::swap(behind_, other.behind_);
    std::swap(bytes_, other.bytes_);
    std::swap(copied_, other.copied_);
    return *this;
  }
  ~StagedBytes() {
    if (pool_ != nullptr) pool_->release(offset_, cls_);
  }

  /// Copies so many more bytes. Returns whether all are there.
  bool copy(std::size_t bytes) {
    const std::size_t piece = std::min(bytes, bytes_.size() - copied_);
    if (piece != 0) std::memcpy(at() + behind_ + copied_, bytes_.data() + copied_, piece);
    copied_ += piece;
    return is_whole();
  }
  [[nodiscard]] bool is_whole() const { return copied_ == bytes_.size(); }
  /// Total number of bytes.
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::byte* at() const { return pool_->at(offset_); }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] SizeClass size_class() const { return cls_; }
  /// Passes ownership of the buffer to the caller. Requires: all bytes are there, and it was not
  /// taken.
  void take() {
    ESPALIER_ASSERT(pool_ != nullptr && is_whole());
    pool_ = nullptr;
  }

 private:
  BufferPool* pool_;  // null: it was taken
  std::uint64_t offset_;
  SizeClass cls_;
  std::size_t behind_;
  std::string_view bytes_;
  std::size_t copied_;
};

}  // namespace espalier::memory
