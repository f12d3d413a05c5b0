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
      entries_(std::make_unique<Entry[]>(std::size_t{mask_} + 1)) {}

// Word by word: the compiler would join two into a load that is wider than the stores were.
void CompletionQueue::unpack(const Entry& entry, Completion& into) {
  const auto word = [](std::uint64_t from) {
    asm volatile("" : "+r"(from));
    return from;
  };
  into.work_id = word(entry.work_id);
  into.old_value = word(entry.old_value);
  const std::uint64_t pair_bytes = word(entry.pair_bytes);
  into.pair = static_cast<std::uint32_t>(pair_bytes >> 32);
  into.bytes = static_cast<std::uint32_t>(pair_bytes);
  const std::uint64_t rest = word(entry.rest);
  into.immediate = static_cast<std::uint32_t>(rest >> 32);
  into.with_immediate = (rest >> 16 & 1) != 0;
  into.opcode = static_cast<Opcode>(rest >> 8);
  into.status = static_cast<Status>(rest);
}

std::size_t CompletionQueue::poll(std::span<Completion> into) {
  endpoint_.progress();
  const std::size_t count = std::min<std::size_t>(into.size(), waiting());
  for (std::size_t i = 0; i < count; ++i) unpack(entries_[begin_++ & mask_], into[i]);
  return count;
}

}  // namespace espalier::fabric
