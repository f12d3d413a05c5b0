// SPDX-License-Identifier: Apache-2.0
#include "kinds/sequencer/counters.hpp"

#include <algorithm>
#include <utility>

#include "kinds/sequencer/redo_record.hpp"

namespace espalier::sequencer {
std::uint64_t* Counters::next_of(std::string_view name) {
  auto at = next_.find(name);
  if (at == next_.end()) {
    if (next_.size() >= kMost) return nullptr;
    at = next_.emplace(name, floor_).first;
  }
  return &at->second;
}

Result<std::uint64_t> Counters::take(std::string_view name, std::uint32_t count,
                                     catalog::RedoSink* sink) {
  if (sink != nullptr && count > kMostAtOnce) return fail(Code::invalid_argument, kMostAtOnce);
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

// One record for all of them: its application moves each lower counter up to it. To issue so many
// numbers takes kLeftOut / kMostAtOnce lost records, 2^32 of 32 bytes and more: logs are much
// shorter (data.log_bytes_max).
Result<void> Counters::go_on_after_loss(catalog::RedoSink* sink) {
  constexpr std::uint64_t kLeftOut = std::uint64_t{1} << 56;
  auto room = catalog::RedoRoom::reserve(sink, sizeof(CounterRecord));
  if (!room) return std::unexpected(room.error());
  const std::lock_guard lock(mutex_);
  std::uint64_t highest = floor_;
  for (const auto& [name, next] : next_) highest = std::max(highest, next);
  raise_floor(highest < kCounterEnd - kLeftOut ? highest + kLeftOut : kCounterEnd);
  if (*room) {
    write_counted(room->bytes(), {}, floor_);
    room->hand_over();
  }
  return {};
}

void Counters::raise_floor(std::uint64_t floor) {
  floor_ = std::max(floor_, floor);
  for (auto& [name, next] : next_) next = std::max(next, floor_);
}

}  // namespace espalier::sequencer
