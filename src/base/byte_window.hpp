// SPDX-License-Identifier: Apache-2.0
// A sliding window over a byte source: the bytes that were read and not yet consumed, contiguous.
// Memory is bounded by the record at hand and one read ahead.
//
//     consumed |<------- view() ------->| not yet read
//
// Invariant: growing at least doubles the view (unless the source ends), so that a caller that
// scans the whole view again after each grow() still does linear work in all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/byte_source.hpp"

namespace espalier::base {

class ByteWindow {
 public:
  explicit ByteWindow(ByteSource& source) : source_(&source), buffer_(kStartBytes) {}

  /// The bytes at hand. Valid until grow() or consume().
  [[nodiscard]] std::string_view view() const { return {buffer_.data() + begin_, end_ - begin_}; }

  /// Whether the source has nothing beyond the view. Known only after a grow() that met the end.
  [[nodiscard]] bool at_end() const { return at_end_; }

  /// Reads until the view has doubled, or is not empty if it was, or the source ends.
  /// Errors: as ByteSource::read; the view is then what could be read.
  Result<void> grow();

  /// Consumes the first `count` bytes of the view.
  void consume(std::size_t count);

  /// Bytes consumed so far.
  [[nodiscard]] std::uint64_t consumed_bytes() const { return consumed_bytes_; }

 private:
  static constexpr std::size_t kStartBytes = std::size_t{256} << 10;

  ByteSource* source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t consumed_bytes_ = 0;
  bool at_end_ = false;
};

}  // namespace espalier::base
