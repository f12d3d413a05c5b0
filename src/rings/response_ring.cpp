// SPDX-License-Identifier: Apache-2.0
#include "rings/response_ring.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/bytes.hpp"
#include "rings/futex.hpp"

namespace espalier::rings {

void ResponseRing::defer(const wire::ResponseHeader& header,
                         std::initializer_list<std::string_view> parts) {
  std::vector<std::byte> message = base::joined(base::bytes_of(header), parts);
  promise(message.size());
  queue(std::move(message));
  if (backlog_.size() == 1) flush_pending();
}

// Of what was promised. Where there is no memory for it, it will not be sent.
void ResponseRing::queue(std::vector<std::byte> message) {
  const std::size_t bytes = message.size();
  try {
    backlog_.push_back(std::move(message));
  } catch (const std::bad_alloc&) {
    take_back(bytes);
    throw;
  }
  if (backlog_.size() == 1) begin_sending();
}

void ResponseRing::begin_sending() {
  const std::vector<std::byte>& next = backlog_.front();
  sending_ = MessageStream(next.data(), static_cast<std::uint32_t>(next.size()), tail_);
}

bool ResponseRing::flush_pending() {
  std::uint64_t left = kFlushSlots;
  while (!backlog_.empty()) {
    left -= sending_.write(space_, std::min(space_.ask_room(tail_), left));
    tail_ = sending_.slot();
    if (!sending_.done()) break;
    take_back(backlog_.front().size());
    backlog_.pop_front();
    if (!backlog_.empty()) begin_sending();
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
