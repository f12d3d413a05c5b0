// SPDX-License-Identifier: Apache-2.0
// Makes a cache say what it was never told: what another node, another map or an earlier
// generation had, or no node at all. Whoever walks by it may be misled, and never be wrong.
//
// What entries are of stays as it is: a reader keeps the head of a leaf only once that was
// confirmed, so a cache names no head of a generation that is still to come.
//
// Thread: one.
#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "base/random.hpp"
#include "kinds/map/remote/map_cache.hpp"

namespace espalier::place {

class NodeCacheForger {
 public:
  /// `any`: references of whatever kind. All outlive it.
  NodeCacheForger(NodeCache& cache, base::Random& random, const std::function<wire::Ref()>& any)
      : cache_(cache), random_(random), any_(any) {}

  /// Changes about one entry of `one_in`.
  void forge(std::uint64_t one_in) {
    for (std::uint64_t i = 0; i < cache_.chunks_.count; ++i) {
      NodeCache::ChunkSet& set = cache_.chunks_.sets[i];
      for (std::uint32_t way = 0; way < NodeCache::kWays; ++way) {
        if (set.tags[way].ref == 0 || random_.below(one_in) != 0) continue;
        forge_bytes({set.bytes[way], NodeCache::kChunkBytes});
      }
    }
    for (std::uint64_t i = 0; i < cache_.places_.count; ++i) {
      for (NodeCache::Place& place : cache_.places_.sets[i].ways) {
        if (place.node == 0 || random_.below(one_in) != 0) continue;
        place.ref = random_.below(2) == 0 ? another_place() : any_().bits;
      }
    }
  }
  /// Every node is where another one is.
  void swap_places() {
    std::uint64_t* last = nullptr;
    for_each_place([&](NodeCache::Place& place) {
      if (last != nullptr) std::swap(*last, place.ref);
      last = &place.ref;
    });
  }
  /// Every node was where it is remembered, and is there no more.
  void outdate_places() {
    for_each_place([](NodeCache::Place& place) {
      const wire::Ref ref{place.ref};
      place.ref = wire::Ref::make(ref.offset(), ref.generation() - 1).bits;
    });
  }
  /// Changes the root that a map's cache has.
  void forge_root(MapCache& map) {
    const std::span root(map.root_bytes(), map.view_.geometry.node_bytes);
    const std::size_t chunks = root.size() / NodeCache::kChunkBytes;
    forge_bytes(
        root.subspan(random_.below(chunks) * NodeCache::kChunkBytes, NodeCache::kChunkBytes));
  }

 private:
  void for_each_place(const auto& change) {
    for (std::uint64_t i = 0; i < cache_.places_.count; ++i) {
      for (NodeCache::Place& place : cache_.places_.sets[i].ways) {
        if (place.node != 0) change(place);
      }
    }
  }
  // Other bytes, those of another entry, or one word that is another.
  void forge_bytes(std::span<std::byte> bytes) {
    const std::uint64_t how = random_.below(3);
    if (how == 0) return random_.fill(bytes);
    if (how == 1) {
      const NodeCache::ChunkSet& set = cache_.chunks_.sets[random_.below(cache_.chunks_.count)];
      return void(
          std::memcpy(bytes.data(), set.bytes[random_.below(NodeCache::kWays)], bytes.size()));
    }
    random_.fill(bytes.subspan(random_.below(bytes.size() / 4) * 4, 4));
  }
  std::uint64_t another_place() {
    const NodeCache::PlaceSet& set = cache_.places_.sets[random_.below(cache_.places_.count)];
    return set.ways[random_.below(NodeCache::kWays)].ref;
  }

  NodeCache& cache_;
  base::Random& random_;
  const std::function<wire::Ref()>& any_;
};

}  // namespace espalier::place
