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
  make_room();
  // An older mapping of the same key may be in the front.
  front_[window.key % kFront] = Window{};
  mapped_.insert_or_assign(window.key, Mapped{window, std::move(memory)});
}

void MappingCache::make_room() {
  front_.fill(Window{});
  std::erase_if(mapped_, [](const auto& entry) {
    const Window& window = entry.second.window;
    return base::load_shared<RegionKey>(window.word) != window.key;
  });
  if (mapped_.size() >= kMappingsMax) mapped_.erase(mapped_.begin());
}

void MappingCache::clear() {
  front_.fill(Window{});
  mapped_.clear();
}

}  // namespace espalier::fabric::shm
