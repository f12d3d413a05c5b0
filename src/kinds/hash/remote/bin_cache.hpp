// SPDX-License-Identifier: Apache-2.0
// Caches of a remote reader of hash maps: copies of buckets, which tell which record to read
// together with the bin, and directories, which tell where bins are.
//
//   bucket  | offset | slot | slot | ... |      the line as it was, its offset for its header
//
// Everything in them is a hint. A bin that answers is read after the read version, and its header
// tells whether it was moved and which segment it belongs to; segments stay where they are while
// their map lives.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/prefetch.hpp"
#include "base/random.hpp"
#include "kinds/hash/format.hpp"
#include "memory/address_range.hpp"

namespace espalier::place {

/// Buckets of any maps of one region, by their offsets. A two-way set-associative table of lines
/// with LRU replacement.
class BinCache {
 public:
  /// Memory is committed as it is used. Without any, nothing is cached.
  explicit BinCache(std::uint64_t bytes) noexcept;

  /// The cached bucket of this offset: its line, whose first word is no header; null: none.
  [[nodiscard]] const std::byte* find(std::uint64_t offset) {
    if (pairs_ == 0) return nullptr;
    std::byte* const first = pair_of(offset);
    std::byte* const second = first + hash::kLineBytes;
    const std::uint64_t word = word_at(first);
    const bool is_second = (word & ~kSecondLast) != offset;
    if (is_second && word_at(second) != offset) return nullptr;
    if (is_second != ((word & kSecondLast) != 0)) set_word(first, word ^ kSecondLast);
    return is_second ? second : first;
  }
  void prefetch(std::uint64_t offset) const {
    if (pairs_ != 0) base::prefetch(pair_of(offset), pair_of(offset) + 2 * hash::kLineBytes);
  }
  /// `line`: the bucket as it was read.
  void keep(std::uint64_t offset, const std::byte* line);

 private:
  [[nodiscard]] std::byte* pair_of(std::uint64_t offset) const {
    __extension__ using Wide = unsigned __int128;
    const auto pair = static_cast<std::uint64_t>(Wide{base::mix64(offset)} * pairs_ >> 64);
    return memory_->base() + pair * 2 * hash::kLineBytes;
  }
  /// The first word of a line: a bucket's offset, and in the first of a pair a bit that the second
  /// was used later.
  [[nodiscard]] static std::uint64_t word_at(const std::byte* line) {
    return base::load_plain<std::uint64_t>(line);
  }
  static void set_word(std::byte* line, std::uint64_t word) {
    std::memcpy(line, &word, sizeof word);
  }
  static constexpr std::uint64_t kSecondLast = 1;

  std::optional<memory::AddressRange> memory_;
  std::uint64_t pairs_ = 0;
};

class KnownDirectories;

/// Memory budget of directories of any maps of one region, shared by all their readers. If another
/// one does not fit, all are evicted. Outlives its users.
class DirectoryBudget {
 public:
  explicit DirectoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  DirectoryBudget(const DirectoryBudget&) = delete;
  DirectoryBudget& operator=(const DirectoryBudget&) = delete;

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  /// In use.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  friend class KnownDirectories;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::vector<KnownDirectories*> users_;
};

/// The cached directories of one map's partitions.
class KnownDirectories {
 public:
  /// Errors: std::bad_alloc.
  KnownDirectories(std::uint32_t partitions, DirectoryBudget& budget);
  ~KnownDirectories();
  KnownDirectories(const KnownDirectories&) = delete;
  KnownDirectories& operator=(const KnownDirectories&) = delete;

  struct Directory {
    hash::PlaceWord place{};  // none: not known
    std::vector<std::uint64_t> entries;
  };
  [[nodiscard]] const Directory& of(std::uint32_t partition) const {
    return directories_[partition];
  }
  /// Whether a directory of so many entries can be cached.
  [[nodiscard]] bool may_keep(std::uint64_t entries) const {
    return entries * 8 <= budget_.bytes_max();
  }
  /// Requires: may_keep() of its entries. Errors: std::bad_alloc.
  void keep(std::uint32_t partition, hash::PlaceWord place, const std::byte* entries);
  void forget(std::uint32_t partition);

 private:
  void forget_all();

  DirectoryBudget& budget_;
  std::vector<Directory> directories_;
};

}  // namespace espalier::place
