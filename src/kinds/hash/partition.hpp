// SPDX-License-Identifier: Apache-2.0
// One partition of a hash map, i.e. the state that its lock guards: its directory and segments,
// their growth, and the execution of one write (docs/design/hash.md).
//
// A write takes all memory that it needs from the partition's stock. If the stock is short it
// changes nothing and returns what it lacks, which its caller fetches without the lock.
//
// Invariants
// 1. Each key has one slot, in the bin that its hash selects now.
// 2. Between a version and its publication nothing fails, waits or allocates.
// 3. Memory that readers can reach is retired, not freed.
// 4. `purged` rises before the state that it covers is taken out.
//
// Thread: the holder of the lock; statistics any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/redo_sink.hpp"
#include "espalier/condition.hpp"
#include "kinds/hash/hash_view.hpp"
#include "kinds/hash/held_versions.hpp"
#include "kinds/hash/partition_lock.hpp"
#include "kinds/hash/record_view.hpp"
#include "kinds/hash/redo_record.hpp"
#include "kinds/hash/retirement.hpp"
#include "kinds/hash/segment.hpp"
#include "kinds/hash/write.hpp"
#include "memory/reclaimer.hpp"
#include "memory/retired_list.hpp"
#include "memory/version_clock.hpp"

namespace espalier::catalog {
}

namespace espalier::hash {

/// One write of one key; everything slow is already done.
struct WriteIntent {
  // User-provided, so that members are initialised one by one: for a defaulted constructor
  // compilers clear the whole object first, by a string instruction, which takes longer.
  WriteIntent() {}

  WriteOp op = WriteOp::put;
  KeyHash hash{0, 0};
  std::string_view key;
  std::string_view value;
  wire::Ref pair{};       // of a long record: the buffer that has key and value
  Condition condition{};  // not on a value: comparing takes long
  WriteHelp help{};
  /// If not null: room with the write's redo record, whose version is set when it is taken.
  catalog::RedoRoom* record = nullptr;
  bool answers_early = false;  // readers may see it before that record is durable
  bool may_grow = true;        // false: there was no memory to grow with
  bool starved = false;        // what it lacked it has not found

  /// Returns the record's sequence, if the version is released only when that is durable, or 0.
  std::uint64_t hand_over_record(std::uint64_t version) const;
};

/// The class of the record that the write takes.
[[nodiscard]] RecordClass class_of(const WriteIntent& intent);

struct WriteOutcome {
  bool condition_failed = false;
  bool refused = false;    // the key's chain has its maximum length; nothing was changed
  bool no_memory = false;  // of the process, to manage a segment; nothing was changed
  bool applied = false;
  bool existed = false;
  std::uint64_t version = 0;   // under which it was written
  std::uint64_t wait_for = 0;  // the answer may be given when this version is released
};

/// The resources that a write lacks.
struct Shortage {
  RecordClass cls = kRecordClasses;  // records of this class
  bool links = false;
  bool retirement = false;  // elements, batches, an id
  bool segment = false;
  std::optional<std::uint32_t> directory{};  // of this depth
  bool growth_can_wait = false;              // there is room without segment and directory

  [[nodiscard]] bool any() const {
    return cls != kRecordClasses || links || retirement || segment || directory;
  }
};

/// A write of a transaction, from Partition::prepare() to finish().
struct PreparedWrite {
  WriteIntent intent;
  bool has_slot = false;
  bool existed = false;
  bool applies = false;  // a put, or an erase of what is there
  /// Of a key that had no slot: its record, without a version yet, which is in a slot now.
  Slot placed{};
  bool pair_gone = false;  // withdraw() has retired the long pair with the record
};

/// The resources that the writes of a transaction lack.
struct TransactionLack {
  std::array<std::uint32_t, kRecordClasses> records{};  // the missing ones of each class
  Shortage growth;  // of the write below: a segment, a directory
  std::size_t write = 0;
  bool refused = false;    // a key's chain has its maximum length, or two hashes are equal
  bool no_memory = false;  // of the process

  [[nodiscard]] bool any() const {
    for (const std::uint32_t lacking : records) {
      if (lacking != 0) return true;
    }
    return growth.any() || refused || no_memory;
  }
};

/// Shared by the partitions of a map.
struct HashServices {
  memory::BufferPool& pool;
  memory::Reclaimer& reclaimer;
  memory::VersionedObject& object;
  memory::VersionClock& clock;
  RecordStore& records;
  Retirement& retirement;
  const HashView& view;
  std::uint32_t map_id;
  std::byte* image;
  HeldVersions held{};
  /// A snapshot is being taken, and no state may be taken out meanwhile.
  std::atomic<bool> holding{false};
};

/// Hands memory that partitions unlinked to the reclaimer; the elements stay in `stock`.
/// Requires: no lock is held.
void hand_over_retired(const HashServices& services, memory::RetiredList retired,
                       memory::RetiredStock& stock) noexcept;

class Partition {
 public:
  static constexpr std::uint32_t kSplitSlots = 1150;  // at which a segment counts as full
  static constexpr std::uint32_t kBinsPerWrite = 4;
  /// Splits that one write makes because there is no room else. Keys that were not chosen have room
  /// after the first; chosen ones could have a segment split at all its depths at once.
  static constexpr std::uint32_t kSplitsPerWrite = 1;
  /// Entries that a directory may have whatever its segments are, and how many there may be for
  /// each segment where it has more. Of keys that were not chosen a directory has less than two
  /// entries for a segment on average; keys of one prefix would double it with each segment.
  static constexpr std::size_t kEntriesFree = 256;
  static constexpr std::size_t kEntriesPerSegment = 8;
  static constexpr std::size_t kElements = 8;  // for what one write may retire, and some more

  Partition(HashServices& services, std::uint32_t number) : services_(services), number_(number) {}
  ~Partition();
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  // Callable without the lock; all else requires it.
  mutable PartitionLock lock;
  [[nodiscard]] std::uint64_t items() const { return items_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t segments() const {
    return segment_count_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t splits() const { return splits_.load(std::memory_order_relaxed); }
  /// Bins moved to other segments.
  [[nodiscard]] std::uint64_t bins_moved() const {
    return bins_moved_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t directory_bytes() const {
    return directory_bytes_.load(std::memory_order_relaxed);
  }

  /// Executes a write, or returns what it lacks.
  [[nodiscard]] Shortage write(const WriteIntent& intent, WriteOutcome& outcome) noexcept;

  // --- for transactions: partition_transaction.cpp. Their writes are of different keys, 64 at
  // most, and the lock is held from lack_of() or prepare() to the end.

  /// Returns what these writes lack, as far as it shows without changing anything.
  [[nodiscard]] TransactionLack lack_of(std::span<PreparedWrite> writes) noexcept;
  /// Prepares the writes, so that none of them can fail; or returns what they lack, and has changed
  /// nothing.
  [[nodiscard]] TransactionLack prepare(std::span<PreparedWrite> writes) noexcept;
  /// Reverts prepare().
  void withdraw(std::span<PreparedWrite> writes) noexcept;
  /// Publishes them under one version, which is not done yet.
  void publish(std::span<PreparedWrite> writes, std::uint64_t version) noexcept;
  /// Takes out the replaced states, or keeps them for readers. Requires: the version is done.
  void finish(std::span<PreparedWrite> writes, std::uint64_t version) noexcept;
  /// The newest state of a key, released or not.
  [[nodiscard]] NewestState newest(const KeyHash& hash, std::string_view key) noexcept;

  // Restocking after a shortage. Each takes ownership of its argument, or gives it back.
  // False: the process has no memory, and there is no record of the class in stock.
  [[nodiscard]] bool stock_records(RecordClass cls,
                                   std::span<const std::uint64_t> offsets) noexcept;
  void stock_segment(std::uint64_t offset) noexcept;
  void stock_directory(std::uint32_t depth, std::uint64_t offset) noexcept;
  /// False: the process has no memory.
  [[nodiscard]] bool stock_retirement(std::size_t writes = 1) noexcept;
  /// Gives back the stock, and unlinks what is ready.
  void flush() noexcept;
  /// Memory unlinked since the last call, for hand_over_retired() after the lock is released: the
  /// reclaimer's own lock may be held for long.
  [[nodiscard]] memory::RetiredList take_retired() noexcept { return std::exchange(unlinked_, {}); }
  /// Takes list elements for future retirements, up to as many as a write may need.
  void take_elements(memory::RetiredStock& from) noexcept {
    while (retired_.size() < kElements && from.size() != 0) retired_.put(from.take());
  }
  /// Takes out links that no reader or snapshot needs any more.
  void take_out_ready() noexcept;
  /// Gives back a segment, and the buffers of the long pairs that it names. Returns the bytes of
  /// the segment; 0: none is left. Requires: no thread uses the map any more.
  [[nodiscard]] std::uint64_t free_segment(bool has_long_pairs) noexcept;

  /// For audits: the segments, in no order, and the stock.
  [[nodiscard]] const std::vector<std::unique_ptr<Segment>>& all_segments() const {
    return segments_;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& entries() const { return entries_; }
  [[nodiscard]] std::uint64_t records_in_stock() const;
  [[nodiscard]] bool has_spare_segment() const { return spare_segment_ != 0; }
  [[nodiscard]] std::optional<std::uint32_t> spare_directory_depth() const {
    if (spare_directory_ == 0) return std::nullopt;
    return spare_directory_depth_;
  }
  [[nodiscard]] PlaceWord directory() const { return directory_; }
  /// A segment that is being split. Bins below `next` have been moved, and others perhaps.
  struct Split {
    Segment* parent = nullptr;
    Segment* child = nullptr;
    std::uint32_t next = 0;
  };
  /// The split in which a segment takes part; null: none.
  [[nodiscard]] const Split* split_of(const Segment& segment) const;
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  // partition_growth.cpp
  void free_long_pairs(const Segment& segment) noexcept;
  [[nodiscard]] Segment& segment_of(const KeyHash& hash) const {
    return *segments_[entries_[hash.prefix(directory_.depth())]];
  }
  [[nodiscard]] bool begin_first() noexcept;
  /// The same, through the readers' directory, whose line a pipeline has prefetched.
  [[nodiscard]] SegmentBytes bytes_of(const KeyHash& hash) const {
    const PlaceWord word = services_.view.segment(directory_, hash.prefix(directory_.depth()));
    return {services_.image, word.offset()};
  }
  [[nodiscard]] bool wants_split(const Segment& segment) const;
  /// Whether the directory has room for the halves of a segment, or may get it.
  [[nodiscard]] bool may_split(const Segment& segment) const;
  /// What a split of it lacks.
  void lack_of_split(const Segment& segment, Shortage& shortage) const;
  /// Requires: it lacks nothing. False: the process has no memory.
  [[nodiscard]] bool begin_split(Segment& segment) noexcept;
  [[nodiscard]] bool double_directory() noexcept;
  void set_entries(const Segment& segment, std::uint32_t index);
  void publish_directory();
  void move_bin(const Split& split, std::uint32_t bin) noexcept;
  void move_next(std::size_t which) noexcept;
  void move_bins(std::uint32_t count) noexcept;
  /// Moves the hash's bin, if its segment is being split and the bin was not moved.
  void move_own_bin(const KeyHash& hash) noexcept;
  /// Whether a bin has room. Until it has, moves bins of its segment's split.
  [[nodiscard]] bool make_room_in(const Segment& segment, std::uint32_t bin) noexcept;
  [[nodiscard]] KeyHash hash_of(Slot slot) const;

  // partition_write.cpp
  enum class Room : std::uint8_t { there, lacking, refused, no_memory };
  [[nodiscard]] Room make_room(const WriteIntent& intent, Shortage& shortage) noexcept;
  [[nodiscard]] bool holds(const WriteIntent& intent, const NewestState& newest) const;
  void look_for_shortage(const WriteIntent& intent, bool has_slot, Shortage& shortage) const;
  /// Adds what the growth that precedes a new key lacks.
  void look_for_growth(const WriteIntent& intent, Shortage& shortage) const;
  [[nodiscard]] Slot fill_record(const WriteIntent& intent) noexcept;
  [[nodiscard]] Slot fill_link(const KeyHash& hash, Slot newer, Slot older) noexcept;
  void commit(const WriteIntent& intent, std::optional<SlotPlace> place,
              WriteOutcome& outcome) noexcept;
  void set_version(Slot slot, std::uint64_t version) noexcept;
  [[nodiscard]] std::uint64_t pop(RecordClass cls) noexcept;

  // partition_transaction.cpp
  /// Finds the key's slot, after moving its bin if that is due.
  [[nodiscard]] std::optional<SlotPlace> place_of(const KeyHash& hash,
                                                  std::string_view key) noexcept;
  void place_record(PreparedWrite& write, TransactionLack& lacks) noexcept;

  // partition_links.cpp
  enum class Pruned : std::uint8_t {
    slot_stays,
    gone,     // with its slot; another slot of the bin may be in its place
    no_room,  // to unlink all that goes
  };
  void take_out_or_keep(const KeyHash& hash, const SlotPlace& place,
                        std::uint64_t version) noexcept;
  [[nodiscard]] bool is_holding() const;
  [[nodiscard]] bool is_obsolete(const SlotPlace& at, std::uint64_t released) const;
  /// Takes out the states of a slot's chain of links that no reader can ask for. `fresh`: the
  /// version of a link that has no entry yet.
  [[nodiscard]] Pruned prune(const KeyHash& hash, const SlotPlace& place,
                             std::uint64_t fresh) noexcept;
  /// Takes out the state below one link. Returns whether the slot is gone.
  [[nodiscard]] bool take_out(const KeyHash& hash, const SlotPlace& place, const SlotPlace& chosen,
                              std::uint64_t& fresh) noexcept;
  void keep(const KeyHash& hash, Slot link, std::uint64_t version) noexcept;
  void raise_purged(std::uint64_t version) noexcept;
  void retire(Slot slot) noexcept;
  void hand_over() noexcept;
  /// Adds one piece to take_retired(). Requires: an element in stock.
  void leave(const memory::Retired& retired) noexcept;
  [[nodiscard]] std::uint32_t batch_room() const;

  HashServices& services_;
  const std::uint32_t number_;
  PlaceWord directory_{};
  std::vector<std::uint32_t> entries_;  // indices of segments, as the directory names them
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Split> under_way_;  // mostly one; more if a put needs room immediately
  // In stock.
  std::array<std::vector<std::uint64_t>, kRecordClasses> records_;
  std::uint64_t spare_segment_ = 0;
  std::uint64_t spare_directory_ = 0;
  std::uint32_t spare_directory_depth_ = 0;
  memory::RetiredStock retired_;
  memory::RetiredList unlinked_;
  RetiredBatch* batch_ = nullptr;
  RetiredBatch* next_batch_ = nullptr;
  std::uint32_t kept_id_ = 0;
  std::vector<std::uint32_t> more_kept_ids_;  // for the further links of a transaction
  // Statistics.
  std::atomic<std::uint64_t> items_{0};
  std::atomic<std::uint64_t> segment_count_{0};
  std::atomic<std::uint64_t> splits_{0};
  std::atomic<std::uint64_t> bins_moved_{0};
  std::atomic<std::uint64_t> directory_bytes_{0};
};

}  // namespace espalier::hash
