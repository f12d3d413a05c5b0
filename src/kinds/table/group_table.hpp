// SPDX-License-Identifier: Apache-2.0
// Rows of a result, one for each key: groups with their states, or distinct rows. In memory of at
// most so many bytes, in the order in which they came.
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
// Keys of one word that lie near each other, as numbers of things often do, have an array of their
// own besides, from key to row: where it knows a row, nothing is hashed, searched or compared.
//
// Growing costs some tens of microseconds or more each time: a segment is split or doubled, a page
// of 2 MiB or the array is taken, which the kernel fills with zeros. Full segments come in bursts,
// for hashes fill all of them alike, so a batch may be told how often the table may grow; it stops
// then, and goes on later. What takes longest, pages and the array, ends such a batch.
//
// Cost: find is one probe of the index and one of a row. Batches go step by step over all keys,
// so that lines that are not in the cache come together.
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

/// Keys one behind the other.
struct KeyBatch {
  const std::byte* keys = nullptr;   ///< rows; or their begins, where KeyLayout::words() is not 0
  std::uint32_t stride = 0;          ///< row_bytes; or 8 * KeyLayout::words(), where that is not 0
  std::uint32_t count = 0;           ///< at most GroupTable::kBatchKeys
  const std::byte* blank = nullptr;  ///< a row without key, where `keys` are only begins
  bool stops_when_full = true;       ///< else keys behind one without room are looked for too
  /// Asked for meanwhile, a line with each key: what is read next. Null: nothing is.
  const std::byte* ahead = nullptr;
  std::uint32_t ahead_stride = 0;
};

class GroupTable {
 public:
  /// Less memory than this cannot hold a group of each size.
  static constexpr std::size_t kBytesMin = 64 * 1024;
  static constexpr std::size_t kNoLimit = ~std::size_t{0};
  static constexpr std::uint32_t kBatchKeys = 256;

  /// Requires: bytes_max >= kBytesMin.
  GroupTable(const KeyLayout& layout, std::size_t bytes_max, std::uint64_t seed);

  struct Found {
    std::byte* row = nullptr;  ///< null: it is not there, and there is no room
    bool is_new = false;       ///< it was not there, and is now, a copy of the one given
  };
  Found find_or_insert(const std::byte* row);

  /// The row of each key, in the order of the keys; new ones are made. Null: there is no room.
  /// Returns: how many keys have their rows; less than all only where it stops when full, or is
  /// paused.
  std::uint32_t find_or_insert(const KeyBatch& batch, std::byte** rows);

  /// Whether the array of near keys is there, and it and the groups stay in the core's cache.
  [[nodiscard]] bool is_direct() const;
  /// Adds rows to their groups; new ones are made of `blank` and the key. Returns: how many it
  /// added; less than all where there is no room for the next one's group, or where it is paused.
  /// Requires: is_direct(); keys are one word.
  std::uint32_t add_direct(const DirectRows& rows, const DirectSums& sums, const std::byte* blank);
  /// How many of the first rows have keys that the array knows. Requires: as above.
  [[nodiscard]] std::uint32_t count_known(const DirectRows& rows, std::uint32_t key_from) const;

  /// From now on it grows so often; then batches are paused. At first there is no bound.
  void allow_growths(std::uint32_t count) { growths_left_ = count; }
  /// Whether the last batch stopped because the table may not grow, though there is room.
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// How often it grew.
  [[nodiscard]] std::uint64_t growths() const { return growths_; }

  [[nodiscard]] std::size_t size() const { return size_; }
  /// In the order in which they came. Requires: i < size().
  [[nodiscard]] std::byte* row(std::size_t i) const {
    return chunks_[i >> chunk_shift_] +
           (i & ((std::size_t{1} << chunk_shift_) - 1)) * layout_.row_bytes;
  }
  /// Forgets all rows and keeps the memory. Cost: does not depend on how many there were.
  void clear();
  /// By how many slots, all rows together, the index has them behind where a search for them
  /// begins. Cost: linear in the index.
  [[nodiscard]] std::uint64_t displacement() const;
  [[nodiscard]] std::size_t memory_bytes() const { return memory_.bytes(); }
  [[nodiscard]] const KeyLayout& layout() const { return layout_; }

 private:
  static constexpr std::size_t kSegmentSlots = 8192;
  static constexpr unsigned kDepthMax = 19;  // 13 more bits of a tag are slots
  static constexpr std::uint64_t kDirectMax = 65536;

  struct Slot {
    std::uint32_t tag;
    std::uint32_t row;  // its number and 1; 0: the slot is free
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
  /// Forgets the array where most keys of a batch lay outside it.
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
  // The rows of keys from direct_base_ on, as far as they are known.
  bool chose_direct_ = false;
  std::byte** direct_ = nullptr;
  std::uint64_t direct_base_ = 0;
  std::uint64_t direct_size_ = 0;
};

}  // namespace espalier::table
