// SPDX-License-Identifier: Apache-2.0
// What a map's writes unlink, on its way to be free: handed to the reclaimer by an id and not piece
// by piece, for its lock and its list would cost more than a write.
//
//   batch   up to 64 records and links that no new reader comes upon: freed once epochs allow
//   kept    one version link that stays in its bin while readers or snapshots may need what is
//           older: once none does, it is ready, and the next write of the partition takes it out
//
// Invariant: an id is of one batch or one kept link from take to release, and there is room to
// release it: what happens between a version and its publication asks the heap for nothing.
//
// Thread: any; one lock, after the reclaimer's and before those of records and pool.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kinds/hash/format.hpp"
#include "kinds/hash/record_store.hpp"
#include "memory/buffer_pool.hpp"

namespace espalier::hash {

struct RetiredBatch {
  static constexpr std::uint32_t kSlots = 64;
  std::array<Slot, kSlots> slots{};
  std::uint32_t count = 0;
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;
};

/// A version link that stays for a while.
struct KeptLink {
  std::uint64_t hash = 0;
  std::uint64_t version = 0;
  std::uint32_t partition = 0;
  std::uint32_t next = 0;  // that is ready; or free
};

class Retirement {
 public:
  Retirement(memory::BufferPool& pool, RecordStore& records, std::uint32_t partitions)
      : pool_(pool), records_(records), ready_(partitions) {}

  /// An empty batch; null: the process has no memory.
  [[nodiscard]] RetiredBatch* take_batch() noexcept;
  /// Takes one back that was not handed over. Requires: it is empty.
  void give_batch(RetiredBatch& batch) noexcept;
  /// The id of a link to be kept; 0: the process has no memory.
  [[nodiscard]] std::uint32_t take_kept() noexcept;
  void give_kept(std::uint32_t id) noexcept;
  void set_kept(std::uint32_t id, std::uint64_t hash, std::uint64_t version,
                std::uint32_t partition) noexcept;

  /// The reclaimer released an id: of a batch, whose records are free now, or of a kept link, which
  /// is ready from now on.
  void release(std::uint32_t id) noexcept;
  /// Frees records and links, with their long pairs. Requires: no reader comes upon them.
  void free(const Slot* slots, std::uint32_t count) noexcept;

  /// Whether a kept link of the partition is ready. Cost: a load.
  [[nodiscard]] bool any_ready(std::uint32_t partition) const {
    return ready_[partition].count.load(std::memory_order_acquire) != 0;
  }
  /// One that is; it stays ready until pop_ready().
  [[nodiscard]] std::optional<KeptLink> first_ready(std::uint32_t partition) const;
  /// Takes the first one out and gives its id back. Requires: nobody else does meanwhile.
  void pop_ready(std::uint32_t partition, const KeptLink& first) noexcept;

  /// Bytes of the buffers of long pairs, until they are free.
  std::atomic<std::uint64_t> long_bytes{0};

  /// Bytes of what a slot of a record or link names, a long pair included.
  [[nodiscard]] std::uint64_t bytes_of(Slot slot) const;
  /// Calls `use` with each slot of each batch that waits. For audits.
  /// Requires: no writes meanwhile.
  template <class Use>
  void for_each_waiting(const Use& use) const {
    const std::lock_guard lock(mutex_);
    for (const auto& batch : batches_) {
      for (std::uint32_t i = 0; i < batch->count; ++i) use(batch->slots[i]);
    }
  }

 private:
  /// Frees a long record's pair; returns the class of what the slot names.
  RecordClass free_pair(Slot slot) noexcept;

  static constexpr std::uint32_t kKept = std::uint32_t{1} << 31;
  struct Ready {
    std::atomic<std::uint32_t> count{0};
    std::uint32_t first = 0;  // its id; guarded by mutex_
  };

  memory::BufferPool& pool_;
  RecordStore& records_;
  mutable std::mutex mutex_;  // guards all below but the counts
  std::vector<std::unique_ptr<RetiredBatch>> batches_;
  std::vector<std::uint32_t> free_batches_;  // with room for all
  std::vector<KeptLink> kept_;
  std::uint32_t free_kept_ = 0;  // id of the first
  std::vector<Ready> ready_;
};

}  // namespace espalier::hash
