// SPDX-License-Identifier: Apache-2.0
// Approximate read counts per leaf, for sessions that fill the tables of switches: counts one of 64
// answers, by the LID of its leaf, and halves the counts every half second. Counts from remote
// clients are untrusted: they decide which nodes are in tables, and nothing else.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "kinds/map/format/node.hpp"

namespace espalier::tree {

class LeafHeat {
 public:
  static constexpr std::uint64_t kHalveNs = 500'000'000;
  /// Limit on counted leaves; beyond it counts are halved sooner.
  static constexpr std::size_t kLeavesMax = std::size_t{1} << 16;

  struct Count {
    wire::Lid lid = 0;
    std::uint32_t answers = 0;  // counted answers
    friend bool operator==(const Count&, const Count&) = default;
  };

  /// Counts an answer of each of these leaves; of some only, if out of memory.
  void add(std::span<const wire::Lid> leaves, std::uint64_t now_ns) noexcept;
  /// The most read leaves, at most `count`. Cost: a partial sort of all counts.
  [[nodiscard]] std::vector<Count> most_read(std::size_t count, std::uint64_t now_ns);
  /// Sets the interval of halving. For tests, where a busy machine gives few answers per interval.
  void halve_each(std::uint64_t ns);

 private:
  void age(std::uint64_t now_ns);
  void halve();

  std::mutex mutex_;
  std::unordered_map<wire::Lid, std::uint32_t> answers_;
  std::uint64_t halved_ns_ = 0;
  std::uint64_t halve_ns_ = kHalveNs;
};

}  // namespace espalier::tree
