// SPDX-License-Identifier: Apache-2.0
// Corrupts a cache: entries get the content of another node, another map, an earlier generation, or
// random bytes. A walk that uses it may be misled, but must never answer wrongly.
//
// Keys of entries stay as they are: a reader caches the head of a leaf only after confirming it, so
// a cache never names a head of a future generation.
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
  /// `any`: arbitrary references. All outlive it.
  NodeCacheForger(NodeCache& cache, base::Random& random, const std::function<wire::Ref()>& any)
      : cache_(cache), random_(random), any_(any) {}

  /// Changes about one entry in `one_in`.
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
  /// Moves every place to another node.
  void swap_places() {
    std::uint64_t* last = nullptr;
    for_each_place([&](NodeCache::Place& place) {
      if (last != nullptr) std::swap(*last, place.ref);
      last = &place.ref;
    });
  }
  /// Makes every place stale.
  void outdate_places() {
    for_each_place([](NodeCache::Place& place) {
      const wire::Ref ref{place.ref};
      place.ref = wire::Ref::make(ref.offset(), ref.generation() - 1).bits;
    });
  }
  /// Changes the root in a map's cache.
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
  // Random bytes, those of another entry, or one changed word.
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
