// SPDX-License-Identifier: Apache-2.0
#include "tree/write/dropped_maps.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "tree/node/planted_tree_bugs.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::tree {

DroppedMaps::DroppedMaps(base::EpochTable epochs, const base::LeaseTable& leases)
    : epochs_(epochs), leases_(&leases) {}

DroppedMaps::~DroppedMaps() = default;

void DroppedMaps::add(std::unique_ptr<MapCore> map) {
  ESPALIER_ASSERT(map->dropped.load(std::memory_order_relaxed));
  if (planted(Bug::dropped_map_freed_at_once)) return;
  const std::uint64_t bytes = map->memory_bytes();
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t stamp = epochs_.current();
    epochs_.advance();
    waiting_.push_back({std::move(map), bytes, stamp});
  }
  collect();
}

void DroppedMaps::collect() {
  std::vector<Waiting> free;  // given back after the lock, for that may take long
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t oldest = leases_->oldest();
    const auto kept = std::ranges::find_if(
        waiting_, [&](const Waiting& waiting) { return waiting.stamp >= oldest; });
    free.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(kept));
    waiting_.erase(waiting_.begin(), kept);
  }
}

bool DroppedMaps::due() const {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() && waiting_.front().stamp < leases_->oldest();
}

std::uint64_t DroppedMaps::bytes_held_since(std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const Waiting& waiting : waiting_) bytes += waiting.stamp < epoch ? 0 : waiting.bytes;
  return bytes;
}

std::uint64_t DroppedMaps::oldest_stamp() const {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() ? 0 : waiting_.front().stamp;
}

std::size_t DroppedMaps::size() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

}  // namespace espalier::tree
