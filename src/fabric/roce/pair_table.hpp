// SPDX-License-Identifier: Apache-2.0
// The pairs of an endpoint by their numbers: 24 random bits, so that a guesser must guess all of
// them.
//
// Open addressing: a number's low bits are its slot, and what finds that taken goes into the next
// one that is free. Half of the slots stay free, so a look-up is mostly one cache line. What is
// removed leaves no mark: those behind it that would be found no more move forward.
//
// Thread: that of the endpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fabric/roce/format.hpp"

namespace espalier::fabric::roce {

class Pair;

class PairTable {
 public:
  static constexpr std::size_t kPairsMax = std::size_t{1} << 14;

  /// A number that no pair has, of those that draw() brings, of which the highest bits count; and
  /// room for it. Nothing: there are too many.
  template <class Draw>
  [[nodiscard]] std::optional<std::uint32_t> draw_number(const Draw& draw) {
    if (size_ == kPairsMax) return std::nullopt;
    if (2 * (size_ + 1) > slots_.size()) grow();
    for (;;) {
      const auto number = static_cast<std::uint32_t>(draw() >> 40);
      if (usable(number) && find(number) == nullptr) return number;
    }
  }
  /// Requires: what draw_number() brought last, for the first time; a pair.
  void insert(std::uint32_t number, Pair* pair) {
    put(number, pair);
    ++size_;
  }
  /// Requires: it is there.
  void erase(std::uint32_t number);
  [[nodiscard]] Pair* find(std::uint32_t number) const {
    for (std::size_t at = number & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.number == number || slot.pair == nullptr) return slot.pair;
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint32_t number = 0;
    Pair* pair = nullptr;  // null: nothing is here
  };
  static constexpr std::size_t kSlotsMin = 16;

  /// 0 and 1 are InfiniBand's own, and all ones stands for many.
  [[nodiscard]] static constexpr bool usable(std::uint32_t number) {
    return number > 1 && number < wire::roce::kMask24;
  }
  void put(std::uint32_t number, Pair* pair);
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(kSlotsMin);  // a power of two
  std::size_t mask_ = kSlotsMin - 1;
  std::size_t size_ = 0;
};

}  // namespace espalier::fabric::roce
