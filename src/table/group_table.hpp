// SPDX-License-Identifier: Apache-2.0
// Rows of a result, one for each key: groups with their states, or distinct rows. In memory of at
// most so many bytes, in the order in which they came.
//
//   index, open addressing         rows, in chunks that never move
//   +------+-----+------+----      +-----+--------+-----+--------+----
//   | hash | row | hash | ...      | key | states | key | states | ...
//   +------+-----+------+----      +-----+--------+-----+--------+----
//
// Keys are compared as bytes, so rows must be canonical: zeros where nothing is, one NaN, one zero.
// The hash depends on a seed, so that nobody can choose keys that collide.
//
// The index grows by the way: a greater one stands beside the old one, and each call moves a few of
// its slots, so that no call takes long.
//
// Cost: find is one probe of the index and one of a row; hashing reads the key once.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "table/schema.hpp"

namespace espalier::table {

/// Where the key of a row lies: its first columns and their null bits.
struct KeyLayout {
  std::uint32_t row_bytes = 0;
  std::uint32_t key_bytes = 0;    ///< from the row's begin
  std::uint32_t null_offset = 0;  ///< of null bits that belong to the key
  std::uint32_t null_bytes = 0;
  std::uint8_t last_mask = 0;  ///< of these, in the last byte

  /// Of the first `key_columns` columns.
  static KeyLayout of(const Schema& schema, std::size_t key_columns);
  [[nodiscard]] bool equal(const std::byte* a, const std::byte* b) const;
  [[nodiscard]] std::uint64_t hash(const std::byte* row, std::uint64_t seed) const;
};

class GroupTable {
 public:
  /// Less memory than this cannot hold a group of each size.
  static constexpr std::size_t kBytesMin = 64 * 1024;
  static constexpr std::size_t kNoLimit = ~std::size_t{0};

  /// Requires: bytes_max >= kBytesMin.
  GroupTable(const KeyLayout& layout, std::size_t bytes_max, std::uint64_t seed);

  struct Found {
    std::byte* row = nullptr;  ///< null: it is not there, and there is no room
    bool is_new = false;       ///< it was not there, and is now, a copy of the one given
  };
  Found find_or_insert(const std::byte* row) {
    return find_or_insert(row, layout_.hash(row, seed_));
  }
  /// The same, of a hash that is known.
  Found find_or_insert(const std::byte* row, std::uint64_t hash);

  [[nodiscard]] std::size_t size() const { return size_; }
  /// In the order in which they came. Requires: i < size().
  [[nodiscard]] std::byte* row(std::size_t i) const {
    return chunks_[i >> chunk_shift_].get() +
           (i & ((std::size_t{1} << chunk_shift_) - 1)) * layout_.row_bytes;
  }
  /// Forgets all rows and keeps the memory.
  void clear();
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] const KeyLayout& layout() const { return layout_; }
  [[nodiscard]] std::uint64_t seed() const { return seed_; }

 private:
  struct Slot {
    std::uint32_t tag;
    std::uint32_t row;  // its number and 1; 0: the slot is free
  };

  /// Slots that were zeros, and cost nothing until they are used.
  struct Index {
    struct Free {
      void operator()(Slot* memory) const;
    };
    std::unique_ptr<Slot[], Free> slots;
    std::size_t size = 0;  ///< a power of two, or 0

    static Index of(std::size_t size);
    [[nodiscard]] std::size_t bytes() const { return size * sizeof(Slot); }
  };

  bool grow_index();
  void migrate();
  bool has_room_for_row();
  /// The slot of this row, or the free one where it belongs.
  Slot* probe(const Index& index, const std::byte* row, std::uint64_t hash) const;

  KeyLayout layout_;
  std::size_t bytes_max_;
  std::uint64_t seed_;
  unsigned chunk_shift_ = 0;
  std::size_t size_ = 0;
  std::size_t memory_bytes_ = 0;
  Index index_;
  Index old_index_;  // its slots from migrated_ on are not yet in the other
  std::size_t migrated_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
};

}  // namespace espalier::table
