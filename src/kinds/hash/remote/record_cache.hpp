// SPDX-License-Identifier: Apache-2.0
// A remote reader's cache of whole records, by their offsets, with LRU replacement in each set.
//
//   set   | word 0 | word 1 | ... | word 6 | - |  place 1 | place 2 | ... | place 7 |
//              the one that was used last         112 bytes each
//   word  | offset of a record | place |           0: none yet; an offset of 0: forgotten
//
// Everything in it is a hint. A record is written once before it is named, and its header has its
// version and generation, which never recur together at one place. So a reader that has read its
// header now, and finds it the same, has the whole record.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/prefetch.hpp"
#include "base/random.hpp"
#include "kinds/hash/format.hpp"
#include "memory/address_range.hpp"

namespace espalier::place {

/// Records of any maps of one region. A set has seven places; the least recently used record is
/// evicted.
class RecordCache {
 public:
  /// Longer records are not cached.
  static constexpr std::uint32_t kRecordBytes = 112;

  /// Memory is committed as it is used. Without any, nothing is cached.
  explicit RecordCache(std::uint64_t bytes) noexcept;

  /// The cached record that a slot names: its header and its pair, valid until the next keep().
  /// Empty: not cached.
  [[nodiscard]] std::span<const std::byte> find(hash::Slot slot);
  void prefetch(hash::Slot slot) const {
    if (sets_ != 0) base::prefetch(set_of(slot.offset()), set_of(slot.offset()) + kHeadBytes);
  }
  /// `record`: as it was confirmed. Links, and records that are too long, are not kept.
  /// Nothing lies at offset 0, whatever a slot says.
  void keep(std::uint64_t offset, std::span<const std::byte> record);
  void forget(std::uint64_t offset);

 private:
  static constexpr std::uint64_t kPlaces = 7;
  static constexpr std::uint64_t kHeadBytes = hash::kLineBytes;
  static constexpr std::uint64_t kSetBytes = kHeadBytes + kPlaces * kRecordBytes;
  static constexpr std::uint64_t kPlaceMask = hash::kRecordAlignment - 1;
  static_assert(kPlaces <= kPlaceMask && (kPlaces + 1) * sizeof(std::uint64_t) <= kHeadBytes);

  [[nodiscard]] std::byte* set_of(std::uint64_t offset) const {
    __extension__ using Wide = unsigned __int128;
    const auto set = static_cast<std::uint64_t>(Wide{base::mix64(offset)} * sets_ >> 64);
    return memory_->base() + set * kSetBytes;
  }
  /// The index of the word of a record in its set; kPlaces: none.
  [[nodiscard]] static std::uint64_t index_of(const std::byte* set, std::uint64_t offset);
  static void move_to_front(std::byte* set, std::uint64_t index, std::uint64_t word);

  std::optional<memory::AddressRange> memory_;
  std::uint64_t sets_ = 0;
};

}  // namespace espalier::place
