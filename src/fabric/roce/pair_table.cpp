// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/pair_table.hpp"

#include <utility>

namespace espalier::fabric::roce {

void PairTable::put(std::uint32_t number, Pair* pair) {
  std::size_t at = number & mask_;
  while (slots_[at].pair != nullptr) at = (at + 1) & mask_;
  slots_[at] = {number, pair};
}

void PairTable::grow() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  mask_ = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.pair != nullptr) put(slot.number, slot.pair);
  }
}

void PairTable::erase(std::uint32_t number) {
  std::size_t free = number & mask_;
  while (slots_[free].number != number) free = (free + 1) & mask_;
  --size_;
  for (std::size_t at = (free + 1) & mask_; slots_[at].pair != nullptr; at = (at + 1) & mask_) {
    // What a look-up would reach by way of the free slot moves there.
    const std::size_t from_its_own = (at - slots_[at].number) & mask_;
    if (from_its_own < ((at - free) & mask_)) continue;
    slots_[free] = slots_[at];
    free = at;
  }
  slots_[free] = {};
}

}  // namespace espalier::fabric::roce
