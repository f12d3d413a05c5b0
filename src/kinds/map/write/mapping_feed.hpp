// SPDX-License-Identifier: Apache-2.0
// The writer side of a map's mapping feed (kinds/map/format/mapping_feed.hpp): publishes page-table
// changes to remote readers that cache places of nodes. Without followers a writer pays one load
// and one predicted branch.
//
// A writer publishes a change after storing it in the page table, and while it still holds the lock
// that protects that LID. So
// I1. entries of one LID are in the order of its changes;
// I2. a reader that reads the tail and then the page table misses no change: it is in the table, or
//     will be published behind that tail.
//
// Writers publish concurrently: each takes a number, and claims its slot by a compare-and-swap of
// the slot's sequence. If a writer is so slow that others have gone around the whole ring and it
// still holds the slot, the entry is left out and counted as a gap: no writer waits.
//
// The ring is allocated when the map is first followed, and lives as long as the map: 64 KiB, less
// than the map's empty page table. Followers take no memory.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/barrier.hpp"
#include "espalier/error.hpp"
#include "kinds/map/format/node.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"

namespace espalier::memory {
class BufferPool;
class Region;
}  // namespace espalier::memory
namespace espalier::wire {
struct FeedPlace;
}

namespace espalier::tree {

class MappingFeed {
 public:
  /// Limit on followers of one map.
  static constexpr std::uint32_t kFollowersMax = 1024;

  void attach(memory::Region& region, memory::BufferPool& pool, std::uint32_t map_id);
  /// Frees its memory. Requires: no thread uses it any more.
  void destroy();

  /// Turns the feed on, if it was off: later changes are published.
  /// Errors: out_of_memory; too_many_participants (kFollowersMax).
  Result<wire::FeedPlace> add_follower();
  /// Turns the feed off with the last follower.
  void remove_follower();
  [[nodiscard]] std::uint32_t followers() const;
  struct Numbers {
    std::uint64_t entries = 0;  // entries begun, in total
    std::uint64_t gaps = 0;     // times that changes may be missing: an entry left out, or off
    std::uint64_t followers = 0;
  };
  [[nodiscard]] Numbers numbers() const;

  /// Requires: the page table has the change already (I1, I2). Cost: a load, without followers.
  void publish(wire::Lid lid, wire::Ref ref, std::uint64_t version) noexcept {
    base::light_barrier();  // pairs with add_follower(): orders the table's store and this load
    std::byte* const ring = ring_.load(std::memory_order_acquire);
    if (ring != nullptr) [[unlikely]]
      append(ring, lid, ref, version);
  }

  /// Offset of its buffer; 0: it has none.
  [[nodiscard]] std::uint64_t offset() const;

 private:
  static void append(std::byte* ring, wire::Lid lid, wire::Ref ref, std::uint64_t version) noexcept;

  std::atomic<std::byte*> ring_{nullptr};  // null: off
  memory::Region* region_ = nullptr;
  memory::BufferPool* pool_ = nullptr;
  std::uint32_t map_id_ = 0;
  mutable std::mutex mutex_;  // guards the rest
  std::uint64_t offset_ = 0;
  std::uint32_t followers_ = 0;
};

}  // namespace espalier::tree
