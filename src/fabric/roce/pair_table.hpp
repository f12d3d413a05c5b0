// SPDX-License-Identifier: Apache-2.0
// The pairs of an endpoint by their numbers. A number is 24 bits: a place in the low 14, and 10
// random ones above, so that a number that was guessed, or is of a pair before, mostly hits nobody.
//
// Thread: that of the endpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace espalier::fabric::roce {

class Pair;

class PairTable {
 public:
  static constexpr std::uint32_t kPairsMax = (1u << 14) - 2;  // places 0 and 1 stay free: numbers
                                                              // 0 and 1 are InfiniBand's own

  /// A number that nobody has; nothing: there are too many.
  std::optional<std::uint32_t> take(std::uint64_t random);
  void set(std::uint32_t number, Pair* pair) { at(number) = {number, pair}; }
  void give(std::uint32_t number);
  [[nodiscard]] Pair* find(std::uint32_t number) const {
    const std::uint32_t place = number & kPlaceMask;
    if (place >= places_.size() || places_[place].number != number) return nullptr;
    return places_[place].pair;
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  static constexpr std::uint32_t kPlaceBits = 14;
  static constexpr std::uint32_t kPlaceMask = (1u << kPlaceBits) - 1;
  static constexpr std::uint32_t kFirstPlace = 2;
  struct Place {
    std::uint32_t number = 0;
    Pair* pair = nullptr;
  };
  Place& at(std::uint32_t number) { return places_[number & kPlaceMask]; }

  std::vector<Place> places_ = std::vector<Place>(kFirstPlace);
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
};

}  // namespace espalier::fabric::roce
