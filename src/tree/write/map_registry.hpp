// SPDX-License-Identifier: Apache-2.0
// The maps of one store, for checks that span them: the buffers of all maps together, and nothing
// else, are what the store's pool has handed out.
//
// Thread: any. The maps themselves are the caller's matter: one may be dropped after `list`.
#pragma once

#include <algorithm>
#include <mutex>
#include <vector>

namespace espalier::tree {

class MapCore;

class MapRegistry {
 public:
  void add(MapCore& map) {
    const std::lock_guard lock(mutex_);
    maps_.push_back(&map);
  }
  /// Does nothing if the map was never added.
  void remove(const MapCore& map) {
    const std::lock_guard lock(mutex_);
    std::erase(maps_, &map);
  }
  [[nodiscard]] std::vector<const MapCore*> list() const {
    const std::lock_guard lock(mutex_);
    return {maps_.begin(), maps_.end()};
  }
  /// Calls `use` for each map; none is removed meanwhile.
  template <class Use>
  void for_each(const Use& use) {
    const std::lock_guard lock(mutex_);
    for (MapCore* map : maps_) use(*map);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<MapCore*> maps_;
};

}  // namespace espalier::tree
