// SPDX-License-Identifier: Apache-2.0
// How often leaves are read, roughly: one answer of 64 is counted, by the LID of its leaf, and what
// was counted is halved each half second. Who fills the tables of switches asks for it. What
// clients from elsewhere count comes from them, and may be anything: it decides which nodes are in
// tables, and nothing else.
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
  /// Leaves that it knows at most; beyond them others are forgotten sooner.
  static constexpr std::size_t kLeavesMax = std::size_t{1} << 16;

  struct Count {
    wire::Lid lid = 0;
    std::uint32_t answers = 0;  // that were counted
    friend bool operator==(const Count&, const Count&) = default;
  };

  /// Counts an answer of each of these leaves; without memory, of some.
  void add(std::span<const wire::Lid> leaves, std::uint64_t now_ns) noexcept;
  /// The most read ones, at most so many. Cost: sorts all.
  [[nodiscard]] std::vector<Count> most_read(std::size_t count, std::uint64_t now_ns);
  /// Halves so often from now on. For tests, which a busy machine may give few answers in a time.
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
