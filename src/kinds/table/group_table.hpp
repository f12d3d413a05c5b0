// SPDX-License-Identifier: Apache-2.0
// Hash table of a query: groups with their states, or distinct rows, one row for each key, in
// insertion order, within a limit of memory.
//
//   directory    segments of the index, open addressing     rows, in chunks that never move
//   +---+        +-----+-----+-----+----                    +-----+--------+-----+--------+----
//   | 0 |------> | tag | row | tag | ...                    | key | states | key | states | ...
//   | 1 |---+    +-----+-----+-----+----                    +-----+--------+-----+--------+----
//   +---+   +--> +-----+-----+-----+----
//                | tag | row | tag | ...
//                +-----+-----+-----+----
//
// A tag is 32 bits of the key's hash. Its upper bits choose the segment, the lower ones the slot
// where the search begins. There is one segment, which doubles until it has kSegmentSlots; then a
// full one is split in two [Fagin, Extendible Hashing], so the index grows by a segment at
// a time.
//
// Keys of one word that lie near each other, as ids often do, also have a direct array from key to
// row: if it knows the row, no hashing, probing or comparison is needed.
//
// Growth takes some tens of microseconds or more each time: it splits or doubles a segment, or
// allocates a page of 2 MiB or the array, which the kernel zeroes. Full segments come in bursts,
// because hashes fill all segments alike, so a batch may limit the number of growths; it pauses at
// the limit, and resumes later. Pages and the array, which take longest, end such a batch.
//
// Cost: a lookup is one probe of the index and one of a row. A batch proceeds stage by stage over
// all keys, so that its cache misses overlap.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kinds/table/group_memory.hpp"
#include "kinds/table/key_layout.hpp"

namespace espalier::table {

struct DirectRows;
struct DirectSums;

/// Keys at a fixed stride.
struct KeyBatch {
  const std::byte* keys = nullptr;   ///< rows; or their begins, where KeyLayout::words() is not 0
  std::uint32_t stride = 0;          ///< row_bytes; or 8 * KeyLayout::words(), where that is not 0
  std::uint32_t count = 0;           ///< at most GroupTable::kBatchKeys
  const std::byte* blank = nullptr;  ///< a row without key, where `keys` are only begins
  bool stops_when_full = true;       ///< else continues after a key without room
  /// Prefetched meanwhile, a line with each key: the next input. Null: nothing.
  const std::byte* ahead = nullptr;
  std::uint32_t ahead_stride = 0;
};

class GroupTable {
 public:
  /// Minimum memory, for a group of any size.
  static constexpr std::size_t kBytesMin = 64 * 1024;
  static constexpr std::size_t kNoLimit = ~std::size_t{0};
  static constexpr std::uint32_t kBatchKeys = 256;

  /// Requires: bytes_max >= kBytesMin.
  GroupTable(const KeyLayout& layout, std::size_t bytes_max, std::uint64_t seed);

  struct Found {
    std::byte* row = nullptr;  ///< null: not found, and no room
    bool is_new = false;       ///< inserted, as a copy of the given one
  };
  Found find_or_insert(const std::byte* row);

  /// The row of each key, in the order of the keys, inserted if missing. Null: there is no room.
  /// Returns the number of keys with rows; less than all only if it stops when full, or is paused.
  std::uint32_t find_or_insert(const KeyBatch& batch, std::byte** rows);

  /// Whether the direct array exists, and it and the groups fit the core's cache.
  [[nodiscard]] bool is_direct() const;
  /// Adds rows to their groups; new groups are made of `blank` and the key. Returns the number of
  /// rows added; less than all if there is no room for the next one's group, or if paused.
  /// Requires: is_direct(); keys are one word.
  std::uint32_t add_direct(const DirectRows& rows, const DirectSums& sums, const std::byte* blank);
  /// Number of leading rows whose keys are in the array. Requires: as above.
  [[nodiscard]] std::uint32_t count_known(const DirectRows& rows, std::uint32_t key_from) const;

  /// Limits growths from now on; at the limit batches pause. Initially unlimited.
  void allow_growths(std::uint32_t count) { growths_left_ = count; }
  /// Whether the last batch paused at the limit of growths, although there is room.
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// Number of growths.
  [[nodiscard]] std::uint64_t growths() const { return growths_; }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// Rows in insertion order. Requires: i < size().
  [[nodiscard]] std::byte* row(std::size_t i) const {
    return chunks_[i >> chunk_shift_] +
           (i & ((std::size_t{1} << chunk_shift_) - 1)) * layout_.row_bytes;
  }
  /// Removes all rows and keeps the memory. Cost: independent of their number.
  void clear();
  /// Total displacement of all rows in the index from their home slots. Cost: linear in the index.
  [[nodiscard]] std::uint64_t displacement() const;
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.bytes(); }
  [[nodiscard]] const KeyLayout& layout() const { return layout_; }

 private:
  static constexpr std::size_t kSegmentSlots = 8192;
  static constexpr unsigned kDepthMax = 19;  // 13 more bits of a tag are slots
  static constexpr std::uint64_t kDirectMax = 65536;

  struct Slot {
    std::uint32_t tag;
    std::uint32_t row;  // its number + 1; 0: the slot is free
  };
  struct Segment {
    Slot* slots;
    std::uint32_t used = 0;
    unsigned depth = 0;  // upper bits that its tags share
  };

  struct View;

  bool choose_direct(const KeyBatch& batch);
  std::uint32_t find_direct(const KeyBatch& batch, std::byte** rows);
  template <bool All, class Add>
  std::uint32_t add_direct_as(const DirectRows& rows, std::uint32_t key_from,
                              const std::byte* blank, const Add& add);
  template <class Add>
  std::uint32_t add_direct_by(const DirectRows& rows, const DirectSums& sums,
                              const std::byte* blank);
  std::byte* row_of_word(std::uint64_t word, const std::byte* blank);
  /// Drops the array if most keys of a batch lay outside it.
  void give_up_direct(std::uint32_t outside, std::uint32_t count) {
    if (2 * outside > count) direct_ = nullptr;
  }
  template <class Keys>
  std::uint32_t find_all(const Keys& keys, const KeyBatch& batch, std::byte** rows);
  template <class Keys>
  std::uint32_t find_in_cache(const Keys& keys, const KeyBatch& batch, std::byte** rows);
  template <class Keys>
  std::uint32_t find_in_memory(const Keys& keys, const KeyBatch& batch, std::byte** rows);
  template <class Keys>
  std::byte* insert(const Keys& keys, std::uint32_t i, std::uint32_t tag, const std::byte* blank);

  [[nodiscard]] std::size_t entry_of(std::uint32_t tag) const {
    return static_cast<std::size_t>(std::uint64_t{tag} >> (32 - depth_));
  }
  [[nodiscard]] Slot* free_slot(std::uint32_t tag) const;
  bool make_room(std::uint32_t tag);
  bool may_grow();
  void count_growth();
  bool has_page_for(std::size_t bytes);
  /// Whether a batch ends at a key that has no row.
  [[nodiscard]] bool stops(const KeyBatch& batch) const { return batch.stops_when_full || paused_; }
  bool double_segment();
  bool split_segment(std::uint32_t number);
  void double_directory();
  bool has_room_for_row();

  KeyLayout layout_;
  KeyHash hash_;
  GroupMemory memory_;
  unsigned chunk_shift_ = 0;
  std::size_t size_ = 0;
  std::uint32_t growths_left_ = ~std::uint32_t{0};
  std::uint64_t growths_ = 0;
  bool paused_ = false;
  unsigned depth_ = 0;
  std::size_t segment_slots_ = 0;
  std::vector<Slot*> directory_;
  std::vector<std::uint32_t> owners_;  // which segment an entry of the directory names
  std::vector<Segment> segments_;
  std::vector<Slot*> free_segments_;
  Slot* split_copy_ = nullptr;
  std::vector<std::byte*> chunks_;
  // Rows of keys from direct_base_ on, if known.
  bool chose_direct_ = false;
  std::byte** direct_ = nullptr;
  std::uint64_t direct_base_ = 0;
  std::uint64_t direct_size_ = 0;
};

}  // namespace espalier::table
