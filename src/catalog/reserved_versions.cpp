// SPDX-License-Identifier: Apache-2.0
#include "catalog/reserved_versions.hpp"

#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::catalog {

// One record at a time is in flight. Other threads do not wait: their versions are still covered,
// or are released with their own records.
void ReservedVersions::reserve(std::uint64_t taken) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  if (pending_ != 0) {
    if (pending_ > sink_.mark().durable()) return;
    pending_ = 0;
    covered_.store(limit_.load(), std::memory_order_release);
    if (taken + kAtATime / 2 <= limit_.load()) return;
  }
  auto room = RedoRoom::reserve(&sink_, record_.bytes);
  if (!room) return;
  const std::uint64_t limit = taken + kAtATime;
  record_.write(room->bytes(), object_, limit);
  limit_.store(limit);
  pending_ = room->hand_over();
}

}  // namespace espalier::catalog
