// SPDX-License-Identifier: Apache-2.0
// Memory for O_DIRECT: its begin and length are multiples of a unit.
//
// Thread: plain memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "log/format.hpp"

namespace espalier::log {

class UnitBuffer {
 public:
  UnitBuffer() = default;
  UnitBuffer(const UnitBuffer&) = delete;
  UnitBuffer& operator=(const UnitBuffer&) = delete;
  ~UnitBuffer() { release(); }

  /// Grows it to at least so many bytes; contents stay.
  void reserve(std::size_t bytes) {
    if (bytes <= size_) return;
    bytes = base::round_up(bytes, kUnitBytes);
    auto* const larger =
        static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kUnitBytes}));
    if (size_ != 0) std::memcpy(larger, data_, size_);
    release();
    data_ = larger;
    size_ = bytes;
  }
  /// Frees the memory.
  void release() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{kUnitBytes});
    data_ = nullptr;
    size_ = 0;
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace espalier::log
