// SPDX-License-Identifier: Apache-2.0
#include "sequencer/counters.hpp"

#include <algorithm>
#include <utility>

#include "sequencer/redo_record.hpp"

namespace espalier::sequencer {
namespace {

void hand_over(catalog::RedoRoom& room, std::string_view name, std::uint64_t next) {
  if (!room) return;
  CounterRecord record{};
  record.head =
      catalog::redo_head(ObjectKind::sequencer, 0, static_cast<std::uint8_t>(RedoType::counted),
                         sizeof record + name.size());
  record.next = next;
  record.name_bytes = static_cast<std::uint32_t>(name.size());
  catalog::RedoWriter writer(room.bytes());
  writer.part(record);
  writer.text(name);
  room.hand_over();
}

}  // namespace

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
  hand_over(*room, name, first + count);
  *next += count;
  return first;
}

Result<void> Counters::apply_redo(std::string_view record) {
  const auto counted = read_counted(record);
  if (!counted) return std::unexpected(counted.error());
  const std::lock_guard lock(mutex_);
  std::uint64_t* const next = next_of(counted->name);
  if (next == nullptr) return fail(Code::out_of_memory, kMost);
  *next = std::max(*next, counted->next);
  return {};
}

}  // namespace espalier::sequencer
