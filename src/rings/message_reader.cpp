// SPDX-License-Identifier: Apache-2.0
#include "rings/message_reader.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace espalier::rings {
namespace {

constexpr std::uint32_t kFirstOnHeap = 4096;  // bytes

}  // namespace

bool MessageReader::begin_long(const MessageBuffer& first, std::uint32_t bytes) {
  if (bytes < header_bytes_ || bytes > wire::kMessageBytesMax) return false;
  gathered_.clear();
  std::memcpy(gathered_.data(), first.data(), wire::kRingSlotBytes);
  have_ = wire::kRingSlotBytes;
  left_ = bytes - have_;
  refused_ = false;
  return true;
}

// The memory grows fourfold, so that a sender that claims much and sends little gets little; of a
// long message little was copied when it got to where it stays (MessageBuffer::grow). Where it is
// refused, the first slot stays, for the error that it is answered.
void MessageReader::keep(const std::byte* bytes, std::uint32_t count) {
  if (refused_) return;
  if (have_ + count > gathered_.capacity()) {
    const std::uint32_t whole = have_ + left_;
    const std::uint32_t more = std::max(4 * gathered_.capacity(), kFirstOnHeap);
    if (!gathered_.grow(std::min(whole, more), have_, whole, *share_)) {
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
