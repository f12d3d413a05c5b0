// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/counters.hpp"

#include <utility>

#include "kinds/sequencer/redo_record.hpp"

namespace espalier::sequencer {
std::uint64_t* Counters::next_of(std::string_view name) {
  auto at = next_.find(name);
  if (at == next_.end()) {
    if (next_.size() >= kMost) return nullptr;
    at = next_.emplace(name, 0).first;
  }
  return &at->second;
}

Result<std::uint64_t> Counters::take(std::string_view name, std::uint32_t count,
                                     catalog::RedoSink* sink) {
  auto room = catalog::RedoRoom::reserve(sink, sizeof(CounterRecord) + name.size());
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  std::uint64_t* const next = next_of(name);
  if (next == nullptr) return fail(Code::out_of_memory, kMost);
  const std::uint64_t first = *next;
  if (count > kCounterEnd - first) return fail(Code::exhausted);
  if (*room) {
    write_counted(room->bytes(), name, first + count);
    room->hand_over();
  }
  *next += count;
  return first;
}

}  // namespace espalier::sequencer
