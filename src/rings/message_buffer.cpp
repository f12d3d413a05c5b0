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
  if (!heap_) std::memcpy(bytes_, other.bytes_, kInPlace);
  return *this;
}

bool MessageBuffer::grow(std::uint32_t bytes, std::uint32_t kept, MessageShare& share) {
  if (bytes <= capacity()) return true;
  ESPALIER_ASSERT(!heap_ || share_ == &share);
  const std::uint32_t more = heap_ ? bytes - heap_bytes_ : bytes;
  if (!share.take(more)) return false;
  std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[bytes]);
  if (!larger) {
    share.give(more);
    return false;
  }
  std::memcpy(larger.get(), data(), kept);
  // A secret stands in the first bytes, if there is one (wipe()): no copy of it stays behind.
  ::explicit_bzero(data(), std::min(capacity(), kInPlace));
  heap_ = std::move(larger);
  share_ = &share;
  heap_bytes_ = bytes;
  return true;
}

void MessageBuffer::wipe(std::uint32_t offset, std::uint32_t bytes) {
  ESPALIER_ASSERT(offset <= capacity() && bytes <= capacity() - offset);
  ::explicit_bzero(data() + offset, bytes);
}

void MessageBuffer::clear_heap() {
  heap_.reset();
  share_->give(heap_bytes_);
  heap_bytes_ = 0;
}

}  // namespace espalier::rings
