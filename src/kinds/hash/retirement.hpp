// SPDX-License-Identifier: Apache-2.0
// Retires what a map's writes unlink: it goes to the reclaimer by an id and not piece by piece,
// because the reclaimer's lock and list would cost more than a write.
//
//   batch   up to 64 records and links that no new reader can reach: freed once epochs allow
//   kept    one version link that stays in its bin while readers or snapshots may need what is
//           older: once none does, it is ready, and the next write of the partition takes it out
//
// If a link is taken out before, its entry stays with the reclaimer as a spare, and the next link
// that keeps about as many bytes reuses it. So a key that is written often while a snapshot is held
// has few entries, and is charged for what it keeps.
//
// Invariant: an id belongs to one batch or one kept link from take to release, and there is room to
// release it: nothing is allocated between a version and its publication.
//
// Thread: any; one lock, after the reclaimer's and before those of records and pool.
#pragma once

#include <array>
#include <atomic>
#include <bit>
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

/// A version link that is kept for readers.
struct LinkEntry {
  std::uint64_t hash = 0;
  std::uint64_t version = 0;  // unique in the map together with the hash: Partition::prepare()
  std::uint64_t bytes = 0;    // that it keeps, itself included
  std::uint32_t partition = 0;
};

class Retirement {
 public:
  Retirement(memory::BufferPool& pool, RecordStore& records, std::uint32_t partitions)
      : pool_(pool), records_(records), ready_(partitions) {}

  /// An empty batch; null: the process has no memory.
  [[nodiscard]] RetiredBatch* take_batch() noexcept;
  /// Takes back a batch that was not handed over. Requires: it is empty.
  void give_batch(RetiredBatch& batch) noexcept;
  /// Returns an id for a link to be kept; 0: the process has no memory.
  [[nodiscard]] std::uint32_t take_kept() noexcept;
  /// Assigns an id from take_kept() to a link.
  void set_kept(std::uint32_t id, const LinkEntry& entry) noexcept;
  /// Assigns a spare entry of about as many bytes to a link, which the reclaimer may release too
  /// early. False: there is none.
  [[nodiscard]] bool reuse_entry(const LinkEntry& entry) noexcept;
  /// A link has replaced the one of `from`, and takes over its entry; its own, if it had one,
  /// becomes spare.
  void move_entry(std::uint64_t hash, std::uint64_t from, std::uint64_t to) noexcept;
  /// A link is gone: its entry becomes spare, or free if it was ready.
  void drop_entry(std::uint64_t hash, std::uint64_t version) noexcept;
  [[nodiscard]] bool has_entry(std::uint64_t hash, std::uint64_t version) const noexcept;
  /// Entries of links, and those that are spare. For audits and tests. Cost: all of them.
  struct EntryNumbers {
    std::uint64_t of_links = 0;
    std::uint64_t spare = 0;
  };
  [[nodiscard]] EntryNumbers entries() const;

  /// The reclaimer released an id: of a batch, whose records are freed, or of a kept link, which
  /// becomes ready.
  void release(std::uint32_t id) noexcept;
  /// Frees records and links, with their long pairs. Requires: no reader can reach them.
  void free(const Slot* slots, std::uint32_t count) noexcept;

  /// Whether a kept link of the partition is ready. Cost: a load.
  [[nodiscard]] bool any_ready(std::uint32_t partition) const {
    return ready_[partition].count.load(std::memory_order_acquire) != 0;
  }
  struct ReadyLink {
    std::uint32_t id = 0;
    LinkEntry entry;
  };
  /// A ready link; it stays ready until drop_entry() or keep_again().
  [[nodiscard]] std::optional<ReadyLink> first_ready(std::uint32_t partition) const;
  /// A link that was ready is still needed: its id may be retired again. False: it is gone, or not
  /// ready any more.
  [[nodiscard]] bool keep_again(std::uint32_t id, std::uint64_t version) noexcept;

  /// Bytes of the buffers of long pairs, until they are free.
  std::atomic<std::uint64_t> long_bytes{0};

  /// Bytes of the record or link that a slot names, its long pair included.
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
  // Numbers of entries begin with 1; 0: none.
  struct Ready {
    std::atomic<std::uint32_t> count{0};
    std::uint32_t first = 0;  // guarded by mutex_
  };
  struct Entry {
    /// free and stocked: of no link, and not with the reclaimer; kept: of a link, and with it;
    /// ready: of a link, and not with it any more; spare: of no link, and with it.
    enum class State : std::uint8_t { free, stocked, kept, ready, spare };
    LinkEntry link;
    std::uint32_t next = 0;      // of the same list: free, ready or spare
    std::uint32_t previous = 0;  // 0: the first of its list
    std::uint32_t same = 0;      // the next one of the same place in by_version_
    State state = State::free;
  };
  // These require the lock.
  [[nodiscard]] bool add_entry() noexcept;
  [[nodiscard]] Entry& entry(std::uint32_t number) { return entries_[number - 1]; }
  [[nodiscard]] std::uint32_t& bucket_of(std::uint64_t version) {
    return by_version_[version & (by_version_.size() - 1)];
  }
  [[nodiscard]] std::uint32_t find(std::uint64_t hash, std::uint64_t version) const;
  void index(std::uint32_t number);
  void forget(std::uint32_t number);
  void push(std::uint32_t& first, std::uint32_t number);
  void unlink(std::uint32_t& first, std::uint32_t number);
  [[nodiscard]] std::uint32_t& spares_of(std::uint64_t bytes) {
    return spare_entries_[static_cast<std::size_t>(std::bit_width(bytes))];
  }
  void set_spare(std::uint32_t number);
  void set_free(std::uint32_t number);
  void leave_ready(std::uint32_t number);

  memory::BufferPool& pool_;
  RecordStore& records_;
  mutable std::mutex mutex_;  // guards all below but the counts
  std::vector<std::unique_ptr<RetiredBatch>> batches_;
  std::vector<std::uint32_t> free_batches_;  // with room for all
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> by_version_;  // of entries of links; a power of two
  std::uint32_t free_entries_ = 0;
  std::array<std::uint32_t, 65> spare_entries_{};  // by the bits of their bytes
  std::vector<Ready> ready_;                       // by partition
};

}  // namespace espalier::hash
