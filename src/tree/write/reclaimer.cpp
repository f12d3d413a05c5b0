// SPDX-License-Identifier: Apache-2.0
#include "tree/write/reclaimer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/own_counter.hpp"
#include "tree/node/planted_tree_bugs.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::tree {

void Reclaimer::stamp(MapCore& map, const Retired& retired, std::uint64_t epoch) {
  stamped_.push_back({retired, &map, epoch});
}

void Reclaimer::free(MapCore& map, const Retired& retired, memory::BufferCache* cache) {
  if (retired.lid != 0) map.table.release(retired.lid);
  if (retired.offset == 0) return;
  if (cache != nullptr) {
    cache->release(retired.offset, retired.size_class);
  } else {
    pool_->release(retired.offset, retired.size_class);
  }
}

bool Reclaimer::needed(const PerMap& state, std::uint64_t version) {
  if (planted(Bug::snapshot_not_held)) return false;
  for (const HeldVersion& held : state.versions) {
    if (!held.expired.load(std::memory_order_relaxed)) return held.version < version;
  }
  return false;
}

void Reclaimer::retire(MapCore& map, std::span<const Retired> retired) {
  const std::lock_guard lock(mutex_);
  PerMap& state = maps_[&map];
  std::uint64_t bytes = 0;
  for (const Retired& one : retired) {
    if (one.offset != 0) bytes += memory::BufferPool::class_bytes(one.size_class);
    if (planted(Bug::stamp_at_unlink)) {
      stamp(map, one, epochs_.current());
    } else {
      state.unreleased.push_back(one);
    }
  }
  base::count_own(retired_since_, static_cast<std::uint32_t>(retired.size()));
  base::count_own(retired_bytes_since_, bytes);
}

bool Reclaimer::collect(memory::BufferCache& cache) {
  const std::lock_guard lock(mutex_);
  retired_since_.store(0, std::memory_order_relaxed);
  retired_bytes_since_.store(0, std::memory_order_relaxed);
  const std::uint64_t epoch = epochs_.current();
  for (auto& [map, state] : maps_) {
    const std::uint64_t released = map->clock.released();
    while (!state.unreleased.empty() && state.unreleased.front().version <= released) {
      stamp(*map, state.unreleased.front(), epoch);
      state.unreleased.pop_front();
    }
  }
  epochs_.advance();
  // Epochs first: a lease that is granted after the look at them holds no older one.
  std::uint64_t oldest = epochs_.oldest();
  if (!planted(Bug::lease_not_counted)) oldest = std::min(oldest, leases_->oldest());
  bool freed = false;
  while (!stamped_.empty() && stamped_.front().stamp < oldest) {
    const Stamped entry = stamped_.front();
    stamped_.pop_front();
    PerMap& state = maps_[entry.map];
    if (needed(state, entry.retired.version)) {
      state.held.push_back(entry.retired);
      state.held_bytes += memory::BufferPool::class_bytes(entry.retired.size_class);
      expire_beyond_limit(*entry.map, state);
    } else {
      free(*entry.map, entry.retired, &cache);
      freed = true;
      // First what erases have taken of the spares: else writes of other threads, short of memory
      // too, take what is freed again and again, and an erase finds nothing.
      if (entry.map->spares_taken.load(std::memory_order_relaxed) &&
          entry.retired.size_class == entry.map->node_class) {
        entry.map->refill_spares(cache);
      }
    }
  }
  return freed;
}

bool Reclaimer::waits_for_readers() const {
  const std::lock_guard lock(mutex_);
  return !stamped_.empty() ||
         std::any_of(maps_.begin(), maps_.end(),
                     [](const auto& entry) { return !entry.second.unreleased.empty(); });
}

bool Reclaimer::waits_for_leases() const {
  const std::uint64_t leased = leases_->oldest();
  const std::lock_guard lock(mutex_);
  return !stamped_.empty() && stamped_.back().stamp >= leased;  // stamps ascend
}

// Stamps anew what no snapshot needs any longer.
void Reclaimer::release_held(MapCore& map, PerMap& state) {
  const std::uint64_t epoch = epochs_.current();
  std::deque<Retired> kept;
  for (const Retired& one : state.held) {
    if (needed(state, one.version)) {
      kept.push_back(one);
    } else {
      state.held_bytes -= memory::BufferPool::class_bytes(one.size_class);
      stamp(map, one, epoch);
    }
  }
  state.held.swap(kept);
}

void Reclaimer::expire_beyond_limit(MapCore& map, PerMap& state) {
  while (state.held_bytes > map.options.snapshot_bytes_max) {
    const auto oldest = std::find_if(
        state.versions.begin(), state.versions.end(),
        [](const HeldVersion& held) { return !held.expired.load(std::memory_order_relaxed); });
    if (oldest == state.versions.end()) break;
    oldest->expired.store(true, std::memory_order_seq_cst);
    release_held(map, state);
  }
}

std::list<HeldVersion>::iterator Reclaimer::hold(MapCore& map, std::uint64_t version,
                                                 std::string owner) {
  const std::lock_guard lock(mutex_);
  auto& versions = maps_[&map].versions;
  // Two threads may register in the other order than they read.
  auto after = versions.end();
  while (after != versions.begin() && std::prev(after)->version > version) --after;
  const auto held = versions.emplace(after);
  held->version = version;
  held->owner = std::move(owner);
  return held;
}

void Reclaimer::drop(MapCore& map, std::list<HeldVersion>::iterator held) {
  const std::lock_guard lock(mutex_);
  PerMap& state = maps_[&map];
  state.versions.erase(held);
  release_held(map, state);
}

void Reclaimer::forget(MapCore& map) {
  const std::lock_guard lock(mutex_);
  const auto found = maps_.find(&map);
  if (found != maps_.end()) {
    for (const Retired& one : found->second.unreleased) free(map, one, nullptr);
    for (const Retired& one : found->second.held) free(map, one, nullptr);
    maps_.erase(found);
  }
  std::deque<Stamped> kept;
  for (const Stamped& entry : stamped_) {
    if (entry.map == &map) {
      free(map, entry.retired, nullptr);
    } else {
      kept.push_back(entry);
    }
  }
  stamped_.swap(kept);
}

std::uint64_t Reclaimer::bytes_held_by_leases() const {
  const std::uint64_t leased = leases_->oldest();
  const std::uint64_t exposed = epochs_.oldest();
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const Stamped& entry : stamped_) {
    if (entry.stamp >= exposed) break;  // stamps ascend
    if (entry.stamp < leased || entry.retired.offset == 0) continue;
    bytes += memory::BufferPool::class_bytes(entry.retired.size_class);
  }
  return bytes;
}

std::vector<std::uint64_t> Reclaimer::bytes_held_since(
    std::span<const std::uint64_t> epochs) const {
  std::vector<std::uint64_t> bytes(epochs.size());
  {
    const std::lock_guard lock(mutex_);
    for (const Stamped& entry : stamped_) {
      if (entry.retired.offset == 0) continue;
      // The newest epoch that keeps it; all older ones do too.
      const auto after = std::ranges::upper_bound(epochs, entry.stamp);
      if (after == epochs.begin()) continue;
      bytes[static_cast<std::size_t>(after - epochs.begin()) - 1] +=
          memory::BufferPool::class_bytes(entry.retired.size_class);
    }
  }
  for (std::size_t i = bytes.size(); i > 1; --i) bytes[i - 2] += bytes[i - 1];
  return bytes;
}

std::vector<Holder> Reclaimer::snapshot_holders() const {
  const std::lock_guard lock(mutex_);
  std::vector<Holder> holders;
  for (const auto& [map, state] : maps_) {
    const std::size_t first = holders.size();
    for (const HeldVersion& held : state.versions) {  // they ascend
      if (held.expired.load(std::memory_order_relaxed)) continue;
      holders.push_back({Holder::Kind::snapshot, held.owner, map->name, held.version, 0});
    }
    const auto of_map = std::span(holders).subspan(first);
    if (of_map.empty()) continue;
    for (const Retired& one : state.held) {
      // The newest snapshot that needs it; all older ones do too.
      const auto after = std::ranges::lower_bound(of_map, one.version, {}, &Holder::since);
      if (after == of_map.begin()) continue;
      std::prev(after)->bytes += memory::BufferPool::class_bytes(one.size_class);
    }
    for (std::size_t i = of_map.size(); i > 1; --i) of_map[i - 2].bytes += of_map[i - 1].bytes;
  }
  return holders;
}

Reclaimer::Waiting Reclaimer::waiting(const MapCore& map, bool list) const {
  const std::lock_guard lock(mutex_);
  Waiting result;
  const auto add = [&](const Retired& one) {
    if (one.offset != 0) result.bytes += memory::BufferPool::class_bytes(one.size_class);
    if (one.lid != 0) ++result.lids;
    if (list && one.offset != 0) result.buffers.push_back(one);
  };
  for (const auto& [other, state] : maps_) {
    if (other != &map) continue;
    for (const Retired& one : state.unreleased) add(one);
    for (const Retired& one : state.held) add(one);
    result.snapshots = state.versions.size();
  }
  for (const Stamped& entry : stamped_) {
    if (entry.map == &map) add(entry.retired);
  }
  return result;
}

}  // namespace espalier::tree
