// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/leaf_heat.hpp"

#include <algorithm>
#include <new>

namespace espalier::tree {

void LeafHeat::add(std::span<const wire::Lid> leaves, std::uint64_t now_ns) noexcept {
  const std::scoped_lock lock(mutex_);
  age(now_ns);
  for (const wire::Lid lid : leaves) {
    const auto known = answers_.find(lid);
    if (known != answers_.end()) {
      if (known->second != ~std::uint32_t{0}) ++known->second;
      continue;
    }
    if (answers_.size() >= kLeavesMax) halve();
    if (answers_.size() >= kLeavesMax) continue;
    try {
      answers_.emplace(lid, 1);
    } catch (const std::bad_alloc&) {
      return;
    }
  }
}

std::vector<LeafHeat::Count> LeafHeat::most_read(std::size_t count, std::uint64_t now_ns) {
  std::vector<Count> counts;
  {
    const std::scoped_lock lock(mutex_);
    age(now_ns);
    counts.reserve(answers_.size());
    for (const auto& [lid, answers] : answers_) counts.push_back({lid, answers});
  }
  const auto hotter = [](const Count& a, const Count& b) {
    return a.answers != b.answers ? a.answers > b.answers : a.lid < b.lid;
  };
  const auto end = counts.begin() + static_cast<std::ptrdiff_t>(std::min(count, counts.size()));
  std::partial_sort(counts.begin(), end, counts.end(), hotter);
  counts.erase(end, counts.end());
  return counts;
}

void LeafHeat::halve_each(std::uint64_t ns) {
  const std::scoped_lock lock(mutex_);
  halve_ns_ = ns;
}

void LeafHeat::age(std::uint64_t now_ns) {
  if (halved_ns_ == 0) halved_ns_ = now_ns;
  while (now_ns - halved_ns_ >= halve_ns_ && now_ns > halved_ns_) {
    if (answers_.empty()) {
      halved_ns_ = now_ns;
      break;
    }
    halve();
    halved_ns_ += halve_ns_;
  }
}

void LeafHeat::halve() {
  for (auto& [lid, answers] : answers_) answers /= 2;
  std::erase_if(answers_, [](const auto& entry) { return entry.second == 0; });
}

}  // namespace espalier::tree
