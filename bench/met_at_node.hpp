// SPDX-License-Identifier: Apache-2.0
// What READs with keys find at a node of this process: why a get takes more than one READ.
//
//   leaf           a table led to a current leaf
//   replaced_leaf  or to a replaced one: the current one was sent
//   interior       or to an interior node, where tables end
//   no_node        or to where no node of the map is any more
//   no_table       no table matched: the node descended
//   several        the READ arrived more than once: it was retransmitted, or the get was retried
//
// Thread: one at a time, and no other one sends READs by key.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kinds/map/offload/index_reads.hpp"

namespace espalier::bench {

inline constexpr std::array<const char*, 6> kMet{"leaf",    "replaced_leaf", "interior",
                                                 "no_node", "no_table",      "several"};
/// A share of gets for each of kMet.
using MetShares = std::array<double, kMet.size()>;

class MetAtNode {
 public:
  /// `counts` must outlive it; null: the node is elsewhere, and all count as leaves.
  explicit MetAtNode(const offload::IndexReadCounts* counts) : counts_(counts) { take(); }

  /// What has happened since the last call: an index of kMet.
  std::size_t take() {
    if (counts_ == nullptr) return 0;
    constexpr auto kRelaxed = std::memory_order_relaxed;
    const std::array<std::uint64_t, 5> now{
        counts_->leaves.load(kRelaxed), counts_->followed.load(kRelaxed),
        counts_->interior.load(kRelaxed), counts_->nothing.load(kRelaxed),
        counts_->resolved.load(kRelaxed)};
    std::size_t which = 0;
    std::uint64_t reads = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const std::uint64_t more = now[i] - std::exchange(before_[i], now[i]);
      if (more == 0) continue;
      // A followed READ has also come to a leaf, or to an interior node.
      if (i != kFollowed) reads += more;
      if (which != kFollowed || i == kInterior) which = i;
    }
    return reads > 1 ? kMet.size() - 1 : which;
  }

 private:
  static constexpr std::size_t kFollowed = 1;
  static constexpr std::size_t kInterior = 2;

  const offload::IndexReadCounts* const counts_;
  std::array<std::uint64_t, 5> before_{};
};

}  // namespace espalier::bench
