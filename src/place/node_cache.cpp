// SPDX-License-Identifier: Apache-2.0
#include "place/node_cache.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace espalier::place {
namespace {

/// So large a part of the memory tells where nodes are: 16 bytes for each, where what is kept of a
/// node takes some hundred.
constexpr std::uint64_t kPlacesShare = 16;

std::uint64_t hash_of(std::uint64_t ref, std::uint64_t chunk) {
  return base::mix64(ref + 0x9e3779b97f4a7c15 * (chunk + 1));
}

}  // namespace

NodeCache::NodeCache(std::uint64_t bytes) noexcept {
  places_.make(bytes / kPlacesShare);
  chunks_.make(bytes - places_.count * sizeof(PlaceSet));
}

const std::byte* NodeCache::find(wire::Ref ref, std::uint32_t chunk) const {
  if (chunks_.count == 0 || !ref) return nullptr;
  const ChunkSet& set = chunks_.of(hash_of(ref.bits, chunk));
  for (std::uint32_t way = 0; way < kWays; ++way) {
    if (set.tags[way].ref == ref.bits && set.tags[way].chunk == chunk) return set.bytes[way];
  }
  return nullptr;
}

void NodeCache::keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes) {
  ESPALIER_ASSERT(bytes.size() <= kChunkBytes);
  if (chunks_.count == 0 || !ref) return;
  ChunkSet& set = chunks_.of(hash_of(ref.bits, chunk));
  std::uint32_t way = kWays;
  for (std::uint32_t i = 0; i < kWays; ++i) {
    const ChunkTag& tag = set.tags[i];
    if (tag.ref == ref.bits && tag.chunk == chunk) {
      way = i;
      break;
    }
    if (tag.ref == 0 && way == kWays) way = i;
  }
  if (way == kWays) way = static_cast<std::uint32_t>(random_.below(kWays));
  set.tags[way] = {ref.bits, chunk};
  std::memcpy(set.bytes[way], bytes.data(), bytes.size());
  std::memset(set.bytes[way] + bytes.size(), 0, kChunkBytes - bytes.size());
}

wire::Ref NodeCache::place(std::uint32_t map, wire::Lid lid) const {
  if (places_.count == 0) return {};
  const std::uint64_t node = node_of(map, lid);
  for (const Place& way : places_.of(hash_of(node, 0)).ways) {
    if (way.node == node) return {way.ref};
  }
  return {};
}

void NodeCache::keep_place(std::uint32_t map, wire::Lid lid, wire::Ref ref) {
  if (places_.count == 0 || lid == 0) return;
  const std::uint64_t node = node_of(map, lid);
  auto& ways = places_.of(hash_of(node, 0)).ways;
  auto* way = std::ranges::find(ways, node, &Place::node);
  if (way == ways.end()) way = std::ranges::find(ways, std::uint64_t{0}, &Place::node);
  if (way == ways.end()) way = &ways[random_.below(kWays)];
  *way = {node, ref.bits};
}

void NodeCache::forget(wire::Ref ref, std::uint32_t chunk) {
  if (chunks_.count == 0 || !ref) return;
  for (ChunkTag& tag : chunks_.of(hash_of(ref.bits, chunk)).tags) {
    if (tag.ref == ref.bits && tag.chunk == chunk) tag = {};
  }
}

wire::Ref NodeCache::move_place(std::uint32_t map, wire::Lid lid, wire::Ref ref) {
  if (places_.count == 0 || lid == 0) return {};
  const std::uint64_t node = node_of(map, lid);
  auto& ways = places_.of(hash_of(node, 0)).ways;
  auto* const way = std::ranges::find(ways, node, &Place::node);
  if (way == ways.end()) return {};
  const wire::Ref before{way->ref};
  *way = ref ? Place{node, ref.bits} : Place{};
  return before;
}

void NodeCache::forget_places(std::uint32_t map) {
  for (std::uint64_t i = 0; i < places_.count; ++i) {
    for (Place& place : places_.sets[i].ways) {
      if (place.node >> 32 == map) place = {};
    }
  }
}

}  // namespace espalier::place
