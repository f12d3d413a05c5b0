// SPDX-License-Identifier: Apache-2.0
// A byte source for tests: reads come in pieces of a chosen size, so that everything is met cut in
// two somewhere, and can be made to fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/byte_source.hpp"

namespace espalier::base {

/// The bytes of a string, handed out at most `piece_bytes` at a time.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string bytes,
                        std::size_t piece_bytes = std::numeric_limits<std::size_t>::max())
      : bytes_(std::move(bytes)), piece_bytes_(std::max<std::size_t>(piece_bytes, 1)) {}

  /// From now on reads fail with `error_number` once `after` bytes were read.
  void fail_after(std::size_t after, int error_number) {
    fail_after_ = after;
    error_number_ = static_cast<std::uint32_t>(error_number);
  }

  Result<std::size_t> read(std::span<char> into) override {
    if (at_ >= fail_after_) return fail(Code::system, error_number_);
    const std::size_t count =
        std::min({into.size(), piece_bytes_, bytes_.size() - at_, fail_after_ - at_});
    std::copy_n(bytes_.data() + at_, count, into.data());
    at_ += count;
    return count;
  }

 private:
  std::string bytes_;
  std::size_t piece_bytes_;
  std::size_t at_ = 0;
  std::size_t fail_after_ = std::numeric_limits<std::size_t>::max();
  std::uint32_t error_number_ = 0;
};

}  // namespace espalier::base
