// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/pair_table.hpp"

namespace espalier::fabric::roce {

std::optional<std::uint32_t> PairTable::take(std::uint64_t random) {
  std::uint32_t place = 0;
  if (!free_.empty()) {
    place = free_.back();
    free_.pop_back();
  } else if (size_ < kPairsMax) {
    place = static_cast<std::uint32_t>(places_.size());
    places_.emplace_back();
  } else {
    return std::nullopt;
  }
  ++size_;
  const auto tag = static_cast<std::uint32_t>(random >> (64 - (24 - kPlaceBits)));
  return tag << kPlaceBits | place;
}

void PairTable::give(std::uint32_t number) {
  at(number) = {};
  free_.push_back(number & kPlaceMask);
  --size_;
}

}  // namespace espalier::fabric::roce
