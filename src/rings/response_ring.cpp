// SPDX-License-Identifier: Apache-2.0
#include "rings/response_ring.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"
#include "rings/futex.hpp"

namespace espalier::rings {

void ResponseRing::defer(std::vector<std::byte> message) {
  const std::size_t bytes = message.size();
  backlog_.push_back(std::move(message));
  backlog_bytes_ += bytes;
  share_->take_anyway(bytes);
  if (backlog_.size() == 1) {
    sending_ = MessageStream(backlog_.front().data(), static_cast<std::uint32_t>(bytes), tail_);
    flush_pending();
  }
}

bool ResponseRing::flush_pending() {
  std::uint64_t left = kFlushSlots;
  while (!backlog_.empty()) {
    left -= sending_.write(space_, std::min(space_.ask_room(tail_), left));
    tail_ = sending_.slot();
    if (!sending_.done()) break;
    backlog_bytes_ -= backlog_.front().size();
    share_->give(backlog_.front().size());
    backlog_.pop_front();
    if (backlog_.empty()) break;
    const std::vector<std::byte>& next = backlog_.front();
    sending_ = MessageStream(next.data(), static_cast<std::uint32_t>(next.size()), tail_);
  }
  return left != kFlushSlots;
}

void ResponseRing::clear() {
  backlog_.clear();
  share_->give(std::exchange(backlog_bytes_, 0));
}

void ResponseRing::wake_reader() {
  base::store_shared(sleeping_word(), std::uint32_t{0}, std::memory_order_release);
  futex_wake(sleeping_word());
}

}  // namespace espalier::rings
