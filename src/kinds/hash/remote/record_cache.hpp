// SPDX-License-Identifier: Apache-2.0
// What a reader elsewhere remembers of records: those that it has read whole, by where they lie,
// recently used first.
//
//   set   | word 0 | word 1 | ... | word 6 | - |  place 1 | place 2 | ... | place 7 |
//              the one that was used last         112 bytes each
//   word  | offset of a record | place |           0: none yet; an offset of 0: forgotten
//
// All of it is hints. A record is written once before it is named, and its header tells its version
// and its generation, of which one place has no two alike. So who has read its header now, and
// finds it the same, has the whole record.
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

/// Records of any maps of one region. Those of one set want its seven places; of these the one that
/// was not used for the longest goes.
class RecordCache {
 public:
  /// Longer ones are not remembered.
  static constexpr std::uint32_t kRecordBytes = 112;

  /// Memory is taken as it is used. Without any, nothing is remembered.
  explicit RecordCache(std::uint64_t bytes) noexcept;

  /// The record that a slot names, if it is remembered: its header and its pair, which are there
  /// until another is kept. Empty: it is not.
  [[nodiscard]] std::span<const std::byte> find(hash::Slot slot);
  void prefetch(hash::Slot slot) const {
    if (sets_ != 0) base::prefetch(set_of(slot.offset()), set_of(slot.offset()) + kHeadBytes);
  }
  /// `record`: as it was confirmed. What is no pair, or too long, is not kept.
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
  /// Which of a set's words has a record; kPlaces: none.
  [[nodiscard]] static std::uint64_t index_of(const std::byte* set, std::uint64_t offset);
  static void move_to_front(std::byte* set, std::uint64_t index, std::uint64_t word);

  std::optional<memory::AddressRange> memory_;
  std::uint64_t sets_ = 0;
};

}  // namespace espalier::place
