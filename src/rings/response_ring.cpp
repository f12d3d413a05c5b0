// SPDX-License-Identifier: Apache-2.0
#include "rings/response_ring.hpp"

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "rings/futex.hpp"

namespace espalier::rings {

void ResponseRing::defer(wire::ResponseHeader header,
                         std::initializer_list<std::string_view> parts) {
  backlog_.push_back(base::joined(base::bytes_of(header), parts));
  backlog_bytes_ += header.bytes;
  share_->take_anyway(header.bytes);
  if (backlog_.size() == 1) {
    sending_ = MessageStream(backlog_.front().data(), header.bytes, tail_);
    flush_pending();
  }
}

bool ResponseRing::flush_pending() {
  bool wrote = false;
  while (!backlog_.empty()) {
    const std::uint32_t slots = sending_.write(space_, space_.ask_room(tail_));
    tail_ = sending_.slot();
    wrote = wrote || slots != 0;
    if (!sending_.done()) break;
    backlog_bytes_ -= backlog_.front().size();
    share_->give(backlog_.front().size());
    backlog_.pop_front();
    if (backlog_.empty()) break;
    const std::vector<std::byte>& next = backlog_.front();
    sending_ = MessageStream(next.data(), static_cast<std::uint32_t>(next.size()), tail_);
  }
  return wrote;
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
