// SPDX-License-Identifier: Apache-2.0
#include "tree/write/dropped_maps.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "tree/node/planted_tree_bugs.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::tree {

DroppedMaps::DroppedMaps(base::EpochTable epochs, const base::LeaseTable& leases)
    : epochs_(epochs), leases_(&leases) {}

DroppedMaps::~DroppedMaps() {
  while (first_ != nullptr) {
    const std::unique_ptr<MapCore> map(std::exchange(first_, first_->waiting.next));
  }
}

void DroppedMaps::add(std::unique_ptr<MapCore> map) noexcept {
  ESPALIER_ASSERT(map->dropped.load(std::memory_order_relaxed));
  if (planted(Bug::dropped_map_freed_at_once)) return;
  const std::uint64_t bytes = map->memory_bytes();
  {
    const std::lock_guard lock(mutex_);
    map->waiting = {nullptr, bytes, bytes, epochs_.current()};
    epochs_.advance();
    MapCore* const added = map.release();
    (first_ == nullptr ? first_ : last_->waiting.next) = added;
    last_ = added;
  }
  if (!in_steps_.load(std::memory_order_relaxed)) collect();
}

std::unique_ptr<MapCore> DroppedMaps::take_free() {
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr || first_->waiting.stamp >= leases_->oldest()) return nullptr;
  return std::unique_ptr<MapCore>(std::exchange(first_, first_->waiting.next));
}

// Each is given back after the lock, for that may take long.
void DroppedMaps::collect() noexcept {
  while (take_free() != nullptr) {
  }
}

// What was given back of it waits no more. Its stamp is below those of all that wait.
void DroppedMaps::put_back(std::unique_ptr<MapCore> map) {
  const std::lock_guard lock(mutex_);
  DroppedMap& waiting = map->waiting;
  waiting.bytes = waiting.all_bytes - std::min(waiting.all_bytes, map->freed_bytes());
  waiting.next = first_;
  if (first_ == nullptr) last_ = map.get();
  first_ = map.release();
}

bool DroppedMaps::collect_some(std::uint32_t nodes) noexcept {
  std::unique_ptr<MapCore> map = take_free();
  if (map == nullptr) return false;
  if (!map->free_nodes(nodes)) put_back(std::move(map));
  map.reset();
  return due();
}

bool DroppedMaps::due() const {
  const std::lock_guard lock(mutex_);
  return first_ != nullptr && first_->waiting.stamp < leases_->oldest();
}

std::uint64_t DroppedMaps::bytes_held_since(std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const MapCore* map = first_; map != nullptr; map = map->waiting.next) {
    bytes += map->waiting.stamp < epoch ? 0 : map->waiting.bytes;
  }
  return bytes;
}

std::uint64_t DroppedMaps::oldest_stamp() const {
  const std::lock_guard lock(mutex_);
  return first_ == nullptr ? 0 : first_->waiting.stamp;
}

std::size_t DroppedMaps::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const MapCore* map = first_; map != nullptr; map = map->waiting.next) ++size;
  return size;
}

}  // namespace espalier::tree
