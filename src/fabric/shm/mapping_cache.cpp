// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/mapping_cache.hpp"

#include <utility>

#include "base/atomic_bytes.hpp"

namespace espalier::fabric::shm {

const Window* MappingCache::find_behind(RegionKey key) {
  const auto found = mapped_.find(key);
  if (found == mapped_.end()) return nullptr;
  Window& front = front_[key % kFront];
  front = found->second.window;
  return &front;
}

void MappingCache::insert(const Window& window, memory::SharedMemory memory) {
  if (const auto older = mapped_.find(window.key); older != mapped_.end()) forget(older);
  make_room(memory.bytes());
  bytes_ += memory.bytes();
  mapped_.emplace(window.key,
                  Mapped{window, std::make_shared<const memory::SharedMemory>(std::move(memory))});
}

void MappingCache::make_room(std::uint64_t bytes) {
  front_.fill(Window{});
  for (auto entry = mapped_.begin(); entry != mapped_.end();) {
    const Window& window = entry->second.window;
    const bool good = base::load_shared<RegionKey>(window.word) == window.key;
    const auto looked_at = entry++;
    if (!good) forget(looked_at);
  }
  while (!mapped_.empty() && (mapped_.size() >= kMappingsMax || bytes_ + bytes > bytes_max_)) {
    forget(mapped_.begin());
  }
}

// Requires: the front is emptied before the next lookup.
void MappingCache::forget(std::unordered_map<RegionKey, Mapped>::iterator entry) {
  bytes_ -= entry->second.memory->bytes();
  mapped_.erase(entry);
}

void MappingCache::clear() {
  front_.fill(Window{});
  mapped_.clear();
  bytes_ = 0;
}

}  // namespace espalier::fabric::shm
