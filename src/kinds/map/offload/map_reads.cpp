// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/map_reads.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "fabric/shared_copy.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

constexpr auto kNode = memory::BufferKind::node;

// A key of this number: the prefix, and the number's bytes without trailing zeros. Other keys may
// have the same number; they lie in the same leaf or behind it.
std::string key_of(std::string_view prefix, std::uint64_t number) {
  std::string key(prefix);
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift & 0xFF);
  while (key.size() > std::max<std::size_t>(1, prefix.size()) && key.back() == '\0') {
    key.pop_back();
  }
  return key;
}

/// Limit on successors followed for one READ: far more than a leaf gets while tables are stale.
constexpr std::uint32_t kSuccessorsMax = 32;

// The current state of the node that begins there. Tables learn of replacements late, and a client
// whose read version is current would otherwise have to read the successor next. Returned unchanged
// are a node replaced at an unreleased version, and whatever is not a node of the map. Requires: an
// exposed epoch.
std::uint64_t newest_of(const tree::MapCore& map, std::uint64_t offset) {
  const memory::BufferPool& pool = map.store.pool;
  const std::uint64_t released = map.versions ? map.clock.released() : wire::kLive - 1;
  std::uint32_t generation = pool.generation_in_use(offset, kNode);
  for (std::uint32_t steps = 0; generation != 0 && steps < kSuccessorsMax; ++steps) {
    const tree::NodeView node = map.view(wire::Ref::make(offset, generation));
    const std::uint64_t superseded = node.superseded();
    if (node.map_id() != map.id || superseded == 0 || superseded > released) break;
    const wire::Ref successor = node.successor_ref();
    if (!successor || pool.generation_in_use(offset, kNode) != generation) break;
    if (!pool.is_buffer_begin(successor.offset(), kNode, successor.generation())) break;
    offset = successor.offset();
    generation = pool.generation_in_use(offset, kNode);
  }
  return offset;
}

// For the beginning of a node; false if it is shorter than a header.
bool is_leaf(std::span<const std::byte> node) {
  wire::NodeHeader header;
  if (node.size() < sizeof header) return false;
  std::memcpy(&header, node.data(), sizeof header);
  return header.level == 0;
}

}  // namespace

Result<std::shared_ptr<MapReads>> MapReads::create(tree::StoreCore& store,
                                                   std::weak_ptr<const tree::MapCore> map,
                                                   std::string prefix, IndexReadCounts* counts) {
  auto slot = store.epochs.join();
  if (!slot) return std::unexpected(slot.error());
  return std::shared_ptr<MapReads>(
      new MapReads(std::move(map), std::move(prefix), std::move(*slot), counts));
}

MapReads::MapReads(std::weak_ptr<const tree::MapCore> map, std::string prefix, base::EpochSlot slot,
                   IndexReadCounts* counts)
    : map_(std::move(map)), prefix_(std::move(prefix)), slot_(std::move(slot)), counts_(counts) {}

void MapReads::read_keyed(std::uint64_t number, std::span<std::byte> into) {
  const std::string key = key_of(prefix_, number);
  tree::Cursor cursor;
  answer(into, [&](const tree::MapCore& map) {
    cursor.key.assign(std::string_view(key).substr(0, map.geometry.key_bytes_max));
    cursor.read_version = map.clock.released();
    return tree::find_leaf(map, cursor, {}).offset();
  });
  if (counts_ != nullptr) counts_->resolved.fetch_add(1, std::memory_order_relaxed);
}

void MapReads::read_at(std::uint64_t offset, std::span<std::byte> into) {
  bool followed = false;
  const bool node = answer(into, [&](const tree::MapCore& map) {
    const std::uint64_t newest = newest_of(map, offset);
    followed = newest != offset;
    return newest;
  });
  if (counts_ == nullptr) return;
  if (node && followed) counts_->followed.fetch_add(1, std::memory_order_relaxed);
  auto& met = is_leaf(into) ? counts_->leaves : counts_->interior;
  (node ? met : counts_->nothing).fetch_add(1, std::memory_order_relaxed);
}

template <class Find>
bool MapReads::answer(std::span<std::byte> into, const Find& find) {
  const auto map = map_.lock();
  if (map == nullptr || map->dropped.load(std::memory_order_acquire)) {
    std::ranges::fill(into, std::byte{0});
    return false;
  }
  const std::scoped_lock lock(mutex_);
  slot_.enter();
  const bool node = copy(*map, find(*map), into);
  slot_.exit();
  return node;
}

// If the same buffer is in use before the first byte and after the last one, it held the same node
// in between: a released buffer never has that generation again.
bool MapReads::copy(const tree::MapCore& map, std::uint64_t offset, std::span<std::byte> into) {
  const memory::BufferPool& pool = map.store.pool;
  const auto bytes = std::min<std::size_t>(into.size(), map.geometry.node_bytes);
  std::ranges::fill(into.subspan(bytes), std::byte{0});
  if (base::planted(dataplane::Bug::entry_taken_at_its_word)) {
    fabric::copy_from_shared(into.data(), map.at(offset), bytes);
    return true;
  }
  const std::uint32_t before = pool.generation_in_use(offset, kNode);
  bool whole = before != 0 && map.view(wire::Ref::make(offset, before)).map_id() == map.id;
  if (whole) {
    fabric::copy_from_shared(into.data(), map.at(offset), bytes);
    whole = pool.generation_in_use(offset, kNode) == before;
  }
  if (!whole) std::ranges::fill(into.first(bytes), std::byte{0});
  return whole;
}

}  // namespace espalier::offload
