// SPDX-License-Identifier: Apache-2.0
#include "fabric/receive_queue.hpp"

#include <algorithm>
#include <bit>

namespace espalier::fabric {

ReceiveQueue::ReceiveQueue(CompletionQueue& completions, std::uint32_t depth)
    : completions_(completions),
      depth_(depth),
      mask_(std::bit_ceil(std::max(depth, 1u)) - 1),
      entries_(std::make_unique<Receive[]>(std::size_t{mask_} + 1)) {}

ReceiveQueue::~ReceiveQueue() {
  for (; begin_ != end_; ++begin_) completions_.release();
}

std::size_t ReceiveQueue::post(std::span<const Receive> receives) {
  std::size_t count = 0;
  while (count < receives.size() && posted() < depth_ && completions_.reserve()) {
    entries_[end_++ & mask_] = receives[count++];
  }
  return count;
}

std::optional<Receive> ReceiveQueue::take() {
  if (begin_ == end_) return std::nullopt;
  return entries_[begin_++ & mask_];
}

void ReceiveQueue::flush(std::uint32_t pair) {
  while (const auto receive = take()) {
    Completion completion;
    completion.work_id = receive->work_id;
    completion.pair = pair;
    completion.status = Status::flushed;
    completion.opcode = Opcode::receive;
    completions_.push(completion);
  }
}

}  // namespace espalier::fabric
