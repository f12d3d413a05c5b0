// SPDX-License-Identifier: Apache-2.0
// The writers' end of a map's mapping feed (kinds/map/format/mapping_feed.hpp): where nodes have
// moved to, for readers from elsewhere that remember where they were. While nobody follows it, a
// writer pays one load and one branch that is predicted.
//
// Who tells it of a change has stored it in the page table before, and still holds what keeps
// others from changing that LID. So
// I1. entries of one LID stand in the order of its changes;
// I2. who reads the tail and then the page table misses no change: it is in the table, or will be
//     told behind that tail.
//
// Several writers write entries at once: each takes a number, and claims its place by a
// compare-and-swap of the place's sequence. Where a writer so slow that others came round the whole
// ring still holds the place, the entry is left out and counted among the gaps: nobody waits.
//
// The ring is made when the map is first followed, and lives as long as the map: 64 KiB, less than
// the map's empty page table. Followers take no memory.
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
  /// Of one map, at most.
  static constexpr std::uint32_t kFollowersMax = 1024;

  void attach(memory::Region& region, memory::BufferPool& pool, std::uint32_t map_id);
  /// Gives its memory back. Nobody may use it any more.
  void destroy();

  /// Turns it on, if it was off: what changes from here on is told.
  /// Errors: out_of_memory; too_many_participants (kFollowersMax).
  Result<wire::FeedPlace> add_follower();
  /// Turns it off with the last one.
  void remove_follower();
  [[nodiscard]] std::uint32_t followers() const;
  struct Numbers {
    std::uint64_t entries = 0;  // that were begun, ever
    std::uint64_t gaps = 0;     // times that some may be missing: one was left out, or it was off
    std::uint64_t followers = 0;
  };
  [[nodiscard]] Numbers numbers() const;

  /// Requires: the page table says so by now (I1, I2). Cost: a load, while nobody follows.
  void publish(wire::Lid lid, wire::Ref ref, std::uint64_t version) noexcept {
    base::light_barrier();  // of add_follower()'s pair: between the store before and this load
    std::byte* const ring = ring_.load(std::memory_order_acquire);
    if (ring != nullptr) [[unlikely]]
      append(ring, lid, ref, version);
  }

  /// Where its buffer is; 0: it has none.
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
