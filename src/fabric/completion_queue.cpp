// SPDX-License-Identifier: Apache-2.0
#include "fabric/completion_queue.hpp"

#include <algorithm>
#include <bit>

#include "fabric/endpoint.hpp"

namespace espalier::fabric {

CompletionQueue::CompletionQueue(Endpoint& endpoint, std::uint32_t capacity)
    : endpoint_(endpoint),
      capacity_(capacity),
      mask_(std::bit_ceil(std::max(capacity, 1u)) - 1),
      entries_(std::make_unique<Completion[]>(std::size_t{mask_} + 1)) {}

std::size_t CompletionQueue::poll(std::span<Completion> into) {
  endpoint_.progress();
  const std::size_t count = std::min<std::size_t>(into.size(), waiting());
  for (std::size_t i = 0; i < count; ++i) into[i] = entries_[begin_++ & mask_];
  return count;
}

}  // namespace espalier::fabric
