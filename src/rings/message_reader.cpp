// SPDX-License-Identifier: Apache-2.0
#include "rings/message_reader.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace espalier::rings {
namespace {

constexpr std::uint32_t kFirstOnHeap = 4096;  // bytes

}  // namespace

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

bool MessageReader::begin_long(const MessageBuffer& first, std::uint32_t bytes) {
  if (bytes < header_bytes_ || bytes > wire::kMessageBytesMax) return false;
  gathered_.clear();
  std::memcpy(gathered_.data(), first.data(), wire::kRingSlotBytes);
  have_ = wire::kRingSlotBytes;
  left_ = bytes - have_;
  refused_ = false;
  return true;
}

// The memory grows fourfold: a third is copied once more, and a sender that claims much and sends
// little gets little. Where it is refused, the first slot stays, for the error that it is answered.
void MessageReader::keep(const std::byte* bytes, std::uint32_t count) {
  if (refused_) return;
  if (have_ + count > gathered_.capacity()) {
    const std::uint32_t whole = have_ + left_;
    const std::uint32_t more = std::max(4 * gathered_.capacity(), kFirstOnHeap);
    if (!gathered_.grow(std::min(whole, more), have_, *share_)) {
      refused_ = true;
      alignas(64) std::byte first[wire::kRingSlotBytes];
      std::memcpy(first, gathered_.data(), sizeof first);
      gathered_.clear();
      std::memcpy(gathered_.data(), first, sizeof first);
      return;
    }
  }
  std::memcpy(gathered_.data() + have_, bytes, count);
  have_ += count;
}

Taken MessageReader::gather(MessageBuffer& into) {
  alignas(64) std::byte slot[wire::kRingSlotBytes];
  while (left_ != 0) {
    if (!slots_.ready()) return Taken::nothing;
    slots_.take(slot);
    const std::uint32_t now = std::min(left_, wire::kRingSlotPayload);
    keep(slot + sizeof(std::uint32_t), now);
    left_ -= now;
  }
  into = std::move(gathered_);
  return std::exchange(refused_, false) ? Taken::refused : Taken::message;
}

}  // namespace espalier::rings
