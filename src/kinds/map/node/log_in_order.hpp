// SPDX-License-Identifier: Apache-2.0
// The log of a leaf in the order of a scan: entries by key, of each key the newest that is visible.
//
// Places in the sorted block order the entries without reading them; entries with the same place
// are read and compared when the scan gets there. So a short scan in a leaf with a long log reads
// only the entries among its own items.
#pragma once

#include <cstdint>

#include "kinds/map/node/node_view.hpp"

namespace espalier::tree {

class LogInOrder {
 public:
  /// Takes the entries with places from `first` to `last`, both included.
  /// Requires: the leaf outlives this; its head and the places are at hand.
  void begin(const NodeView& leaf, std::uint64_t read_version, std::uint32_t first,
             std::uint32_t last);

  /// Number of entries; at() may find some of them invisible.
  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] std::uint32_t place(std::uint32_t i) const { return places_[i]; }
  /// The i-th entry by key; null if it is invisible to the reader or replaced by a newer entry.
  /// Such entries come behind the others with the same place.
  [[nodiscard]] const LogItem* at(std::uint32_t i) {
    if ((decided_ >> i & 1) == 0) decide(i);
    return slots_[i] == kNone ? nullptr : &items_[slots_[i]];
  }

 private:
  static constexpr std::uint8_t kNone = 0xFF;

  void decide(std::uint32_t i);

  const std::byte* leaf_ = nullptr;
  const Geometry* geometry_ = nullptr;
  std::uint64_t read_version_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t decided_ = 0;  // a bit for each entry: whether slots_ is final
  std::uint16_t places_[wire::kLogSlotsMax];
  std::uint8_t slots_[wire::kLogSlotsMax];
  LogItem items_[wire::kLogSlotsMax];  // by slot, of decided entries
  static_assert(wire::kLogSlotsMax <= 32, "a bit of decided_ for each");
};

}  // namespace espalier::tree
