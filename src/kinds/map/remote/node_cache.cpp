// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/node_cache.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "memory/collapse.hpp"
#include "memory/region.hpp"

namespace espalier::place {
namespace {

/// Share of the memory for places: a place takes 16 bytes, the chunks of a node some hundred.
constexpr std::uint64_t kPlacesShare = 16;
constexpr std::uint64_t kSmallPage = 4096;

std::uint64_t hash_of(std::uint64_t ref, std::uint64_t chunk) {
  return base::mix64(ref + 0x9e3779b97f4a7c15 * (chunk + 1));
}

}  // namespace

NodeCache::NodeCache(std::uint64_t bytes) noexcept {
  const std::uint64_t places = bytes / kPlacesShare / sizeof(PlaceSet) * sizeof(PlaceSet);
  const std::uint64_t rounded = (bytes + kSmallPage - 1) & ~(kSmallPage - 1);
  auto range = memory::AddressRange::private_memory(rounded, false);
  if (!range || !range->open(0, rounded)) return;
  memory_ = std::move(*range);
  places_.make(memory_->base(), places);
  chunks_.make(memory_->base() + places, bytes - places);
}

const std::byte* NodeCache::find(wire::Ref ref, std::uint32_t chunk) const {
  if (chunks_.count == 0 || !ref) return nullptr;
  for (const ChunkSet* const set : chunks_.of(hash_of(ref.bits, chunk))) {
    // Branch-free, since the way is unpredictable.
    std::uint32_t ways = 0;
    for (std::uint32_t way = 0; way < kWays; ++way) {
      const std::uint64_t other = (set->tags[way].ref ^ ref.bits) | (set->tags[way].chunk ^ chunk);
      ways |= std::uint32_t{other == 0} << way;
    }
    if (ways != 0) [[likely]]
      return set->bytes[std::countr_zero(ways)];
  }
  return nullptr;
}

// Few entries are in their second set; prefetching it each time costs more than it saves.
void NodeCache::prefetch_tags(wire::Ref ref, std::uint32_t chunk) const {
  if (chunks_.count != 0) base::prefetch_line(chunks_.of(hash_of(ref.bits, chunk))[0]);
}

void NodeCache::prefetch_place(std::uint32_t map, wire::Lid lid) const {
  if (places_.count != 0) base::prefetch_line(places_.of(hash_of(node_of(map, lid), 0))[0]);
}

// The entry's own slot, else a free one, else a random one.
NodeCache::ChunkTag* NodeCache::room_for(std::array<ChunkSet*, 2> sets, ChunkTag tag,
                                         std::byte*& bytes) {
  for (const ChunkTag& wanted : {tag, ChunkTag{}}) {
    for (ChunkSet* const set : sets) {
      const auto way = std::ranges::find(set->tags, wanted);
      if (way == set->tags.end()) continue;
      bytes = set->bytes[way - set->tags.begin()];
      return &*way;
    }
  }
  const std::uint64_t any = random_.below(2 * kWays);
  ChunkSet* const set = sets[any / kWays];
  bytes = set->bytes[any % kWays];
  return &set->tags[any % kWays];
}

void NodeCache::keep(wire::Ref ref, std::uint32_t chunk, std::span<const std::byte> bytes) {
  ESPALIER_ASSERT(bytes.size() <= kChunkBytes);
  if (chunks_.count == 0 || !ref) return;
  const ChunkTag tag{ref.bits, chunk};
  std::byte* at = nullptr;
  ChunkTag* const room = room_for(chunks_.of(hash_of(ref.bits, chunk)), tag, at);
  if (room->ref == 0) took_room();
  *room = tag;
  std::memcpy(at, bytes.data(), bytes.size());
  std::memset(at + bytes.size(), 0, kChunkBytes - bytes.size());
}

// With as many chunks as pages, nearly two thirds of the pages are in use. From then on huge pages
// take little more memory, and lookups touch few of them. Converts one at a time, since each takes
// a good part of a millisecond.
void NodeCache::took_room() {
  constexpr std::uint64_t kBetween = 64;
  const std::uint64_t pages = memory_->bytes() / kSmallPage;
  if (++used_ < pages || used_ % kBetween != 0) return;
  if (memory_->bytes() - huge_bytes_ < memory::kExtentBytes) return;
  const bool made = memory::collapse(*memory_, huge_bytes_).has_value();
  huge_bytes_ = made ? huge_bytes_ + memory::kExtentBytes : memory_->bytes();
}

NodeCache::Place* NodeCache::find_place(std::uint64_t node) const {
  if (places_.count == 0) return nullptr;
  for (PlaceSet* const set : places_.of(hash_of(node, 0))) {
    std::uint32_t ways = 0;
    for (std::uint32_t way = 0; way < kWays; ++way) {
      ways |= std::uint32_t{set->ways[way].node == node} << way;
    }
    if (ways != 0) [[likely]]
      return &set->ways[static_cast<std::size_t>(std::countr_zero(ways))];
  }
  return nullptr;
}

wire::Ref NodeCache::place(std::uint32_t map, wire::Lid lid) const {
  const Place* const known = find_place(node_of(map, lid));
  return known != nullptr ? wire::Ref{known->ref} : wire::Ref{};
}

void NodeCache::keep_place(std::uint32_t map, wire::Lid lid, wire::Ref ref) {
  if (places_.count == 0 || lid == 0) return;
  const std::uint64_t node = node_of(map, lid);
  Place* room = find_place(node);
  const auto sets = places_.of(hash_of(node, 0));
  for (PlaceSet* const set : sets) {
    if (room != nullptr) break;
    const auto way = std::ranges::find(set->ways, std::uint64_t{0}, &Place::node);
    if (way != set->ways.end()) room = &*way;
  }
  if (room == nullptr) {
    const std::uint64_t any = random_.below(2 * kWays);
    room = &sets[any / kWays]->ways[any % kWays];
  }
  *room = {node, ref.bits};
}

void NodeCache::forget(wire::Ref ref, std::uint32_t chunk) {
  if (chunks_.count == 0 || !ref) return;
  for (ChunkSet* const set : chunks_.of(hash_of(ref.bits, chunk))) {
    std::ranges::replace(set->tags, ChunkTag{ref.bits, chunk}, ChunkTag{});
  }
}

wire::Ref NodeCache::move_place(std::uint32_t map, wire::Lid lid, wire::Ref ref) {
  if (lid == 0) return {};
  const std::uint64_t node = node_of(map, lid);
  Place* const known = find_place(node);
  if (known == nullptr) return {};
  const wire::Ref before{known->ref};
  *known = ref ? Place{node, ref.bits} : Place{};
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
