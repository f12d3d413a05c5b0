// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/node/log_in_order.hpp"

#include <algorithm>

namespace espalier::tree {

void LogInOrder::begin(const NodeView& leaf, std::uint64_t read_version, std::uint32_t first,
                       std::uint32_t last) {
  leaf_ = leaf.bytes();
  geometry_ = &leaf.geometry();
  read_version_ = read_version;
  count_ = 0;
  decided_ = 0;
  const std::uint32_t entries = leaf.log_entries(leaf.lock_word());
  for (std::uint32_t slot = 0; slot < entries; ++slot) {
    const std::uint16_t place = leaf.log_place(slot);
    if (place < first || place > last) continue;
    std::uint32_t at = count_++;
    for (; at != 0 && places_[at - 1] > place; --at) {
      places_[at] = places_[at - 1];
      slots_[at] = slots_[at - 1];
    }
    places_[at] = place;
    slots_[at] = static_cast<std::uint8_t>(slot);
  }
}

// Reads all entries that have the same place, and sorts them by key.
void LogInOrder::decide(std::uint32_t i) {
  std::uint32_t first = i;
  std::uint32_t end = i + 1;
  while (first != 0 && places_[first - 1] == places_[i]) --first;
  while (end != count_ && places_[end] == places_[i]) ++end;
  const NodeView leaf(leaf_, *geometry_);
  std::uint32_t kept = first;                              // the end of the sorted ones
  for (std::uint32_t from = first; from != end; ++from) {  // from the oldest to the newest
    decided_ |= 1u << from;
    const std::uint8_t slot = slots_[from];
    const LogItem item = leaf.log_item(slot, read_version_);
    if (item.version == wire::kLive) continue;
    items_[slot] = item;
    std::uint32_t at = kept;
    int order = 1;
    for (; at != first; --at) {
      order = compare_keys(item.key, items_[slots_[at - 1]].key);
      if (order >= 0) break;
    }
    if (at != first && order == 0) {
      slots_[at - 1] = slot;  // the later entry is newer
      continue;
    }
    std::copy_backward(slots_ + at, slots_ + kept, slots_ + kept + 1);
    slots_[at] = slot;
    ++kept;
  }
  std::fill(slots_ + kept, slots_ + end, kNone);
}

}  // namespace espalier::tree
