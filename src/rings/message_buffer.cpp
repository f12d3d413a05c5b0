// SPDX-License-Identifier: Apache-2.0
#include "rings/message_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "rings/message_budget.hpp"

namespace espalier::rings {

MessageBuffer& MessageBuffer::operator=(MessageBuffer&& other) noexcept {
  if (this == &other) return *this;
  clear();
  heap_ = std::move(other.heap_);
  share_ = other.share_;
  heap_bytes_ = std::exchange(other.heap_bytes_, 0);
  reserved_bytes_ = std::exchange(other.reserved_bytes_, 0);
  if (!heap_) std::memcpy(bytes_, other.bytes_, kInPlace);
  return *this;
}

bool MessageBuffer::grow(std::uint32_t bytes, std::uint32_t kept, std::uint32_t whole,
                         MessageShare& share) {
  if (bytes <= capacity()) return true;
  ESPALIER_ASSERT(!heap_ || share_ == &share);
  const std::uint32_t more = bytes - heap_bytes_;
  if (!share.take(more)) return false;
  if (bytes > reserved_bytes_ && !reserve(bytes, kept, whole)) {
    share.give(more);
    return false;
  }
  share_ = &share;
  heap_bytes_ = bytes;
  return true;
}

bool MessageBuffer::reserve(std::uint32_t bytes, std::uint32_t kept, std::uint32_t whole) {
  std::uint32_t reserved = bytes < kReserved ? bytes : std::max(bytes, whole);
  std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[reserved]);
  if (!larger && reserved != bytes) {
    reserved = bytes;
    larger.reset(new (std::nothrow) std::byte[reserved]);
  }
  if (!larger) return false;
  std::memcpy(larger.get(), data(), kept);
  // A secret stands in the first bytes, if there is one (wipe()): no copy of it stays behind.
  ::explicit_bzero(data(), std::min(capacity(), kInPlace));
  heap_ = std::move(larger);
  reserved_bytes_ = reserved;
  return true;
}

void MessageBuffer::wipe(std::uint32_t offset, std::uint32_t bytes) {
  ESPALIER_ASSERT(offset <= capacity() && bytes <= capacity() - offset);
  ::explicit_bzero(data() + offset, bytes);
}

void MessageBuffer::clear_heap() {
  heap_.reset();
  share_->give(heap_bytes_);
  heap_bytes_ = reserved_bytes_ = 0;
}

}  // namespace espalier::rings
