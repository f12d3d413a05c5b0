// SPDX-License-Identifier: Apache-2.0
// What a reader elsewhere remembers of hash maps: buckets of bins as they were, which tell what to
// ask for together with the bin, and directories, which tell where bins are.
//
//   bucket  | offset | slot | slot | ... |      the line as it was, its offset for its header
//
// All of it is hints. A bin that answers was read after the read version, and says itself whether
// it was moved and whose it is; segments stay where they are while their map lives.
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

/// Buckets of any maps of one region, by their offsets. A table of pairs of lines; of three that
/// want one that goes which was not used for the longest.
class BinCache {
 public:
  /// Memory is taken as it is used. Without any, nothing is remembered.
  explicit BinCache(std::uint64_t bytes) noexcept;

  /// As a bucket at this offset was: its line, whose first word is no header; null: not known.
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
  /// `line`: the bucket as it came.
  void keep(std::uint64_t offset, const std::byte* line);

 private:
  [[nodiscard]] std::byte* pair_of(std::uint64_t offset) const {
    __extension__ using Wide = unsigned __int128;
    const auto pair = static_cast<std::uint64_t>(Wide{base::mix64(offset)} * pairs_ >> 64);
    return memory_->base() + pair * 2 * hash::kLineBytes;
  }
  /// The first word of a line: a bucket's offset, and in the first of a pair whether the second was
  /// used later.
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

/// Bytes for directories of any maps of one region, which all that read by it share. Where one more
/// does not fit, what there is makes room. Outlives what it is given to.
class DirectoryBudget {
 public:
  explicit DirectoryBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}
  DirectoryBudget(const DirectoryBudget&) = delete;
  DirectoryBudget& operator=(const DirectoryBudget&) = delete;

  [[nodiscard]] std::uint64_t bytes_max() const { return bytes_max_; }
  /// Of what is kept.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  friend class KnownDirectories;
  const std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::vector<KnownDirectories*> users_;
};

/// The directories of one map's partitions.
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
  /// Whether one of so many entries can be kept.
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
