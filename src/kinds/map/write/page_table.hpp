// SPDX-License-Identifier: Apache-2.0
// LIDs, and the page table that maps them to the buffers that currently hold the nodes [Honeycomb
// §3.1]. Layout: kinds/map/format/map_header.hpp.
//
// Invariants
// 1. An entry is changed only by the writer that holds the node's lock (leaves) or the map's
//    structure lock (all nodes), by one release store: that store swaps a whole subtree.
// 2. A writer publishes each change to the mapping feed after that store, and before it releases
//    that lock (mapping_feed.hpp).
// 3. The LID of an unlinked node keeps its last buffer until that buffer is reclaimed; then its
//    entry becomes 0 and the LID may be reused.
//
// Thread: lookups any; the rest any, serialised inside.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "espalier/error.hpp"
#include "kinds/map/format/map_header.hpp"
#include "kinds/map/write/mapping_feed.hpp"

namespace espalier::tree {

class PageTable {
 public:
  /// Creates an empty table. Errors: out_of_memory.
  Result<void> create(memory::Region& region, memory::BufferPool& pool, std::uint32_t map_id);
  /// Frees all its memory. Requires: no thread uses it any more.
  void destroy();

  [[nodiscard]] std::uint64_t directory_offset() const { return directory_offset_; }

  /// Region offset of the entry of `lid`; 0 if there is none.
  [[nodiscard]] std::uint64_t entry_offset(wire::Lid lid) const {
    const std::uint32_t page = lid >> wire::kTablePageShift;
    if (page >= wire::kDirectoryEntries || page < wire::kHeaderWords) return 0;
    const auto offset = base::load_shared<std::uint64_t>(directory_ + std::size_t{8} * page,
                                                         std::memory_order_acquire);
    return offset == 0 ? 0 : offset + std::uint64_t{8} * (lid % wire::kTablePageEntries);
  }
  [[nodiscard]] wire::Ref get(wire::Lid lid) const {
    const std::uint64_t offset = entry_offset(lid);
    return offset == 0 ? wire::Ref{}
                       : wire::Ref{base::load_shared<std::uint64_t>(base_ + offset,
                                                                    std::memory_order_acquire)};
  }
  /// `version`: at which the node in that buffer was created.
  void set(wire::Lid lid, wire::Ref ref, std::uint64_t version) {
    if (planted(Bug::feed_before_table)) feed_.publish(lid, ref, version);
    base::store_shared<std::uint64_t>(base_ + entry_offset(lid), ref.bits,
                                      std::memory_order_release);
    if (!planted(Bug::feed_before_table)) feed_.publish(lid, ref, version);
  }
  /// Publishes each change, while it has followers.
  [[nodiscard]] MappingFeed& feed() { return feed_; }
  [[nodiscard]] const MappingFeed& feed() const { return feed_; }

  /// Ensures that the next `count` allocations succeed. Errors: out_of_memory.
  Result<void> reserve(std::uint32_t count) noexcept;
  /// Requires: reserved.
  wire::Lid allocate() noexcept;
  /// Frees a LID whose node is reclaimed; its entry becomes 0. Does not allocate: room for the LID
  /// was reserved with it.
  void release(wire::Lid lid) noexcept;

  /// Number of LIDs in use.
  [[nodiscard]] std::uint64_t in_use() const;
  /// Buffers of the table itself: pages, the directory, the feed's.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint32_t>> buffers() const;
  /// Total size of these buffers.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  Result<void> add_page();
  [[nodiscard]] std::uint64_t page_offset(std::uint32_t page) const {
    return base::load_plain<std::uint64_t>(directory_ + std::size_t{8} * page);
  }

  memory::Region* region_ = nullptr;
  memory::BufferPool* pool_ = nullptr;
  std::byte* base_ = nullptr;
  std::byte* directory_ = nullptr;
  std::uint64_t directory_offset_ = 0;
  std::uint32_t map_id_ = 0;
  MappingFeed feed_;

  mutable std::mutex mutex_;     // guards the rest
  std::vector<wire::Lid> free_;  // with capacity for all LIDs in use or reserved
  std::uint32_t pages_ = 0;
  wire::Lid next_ = 0;  // the smallest LID never used
  std::uint64_t in_use_ = 0;
};

}  // namespace espalier::tree
