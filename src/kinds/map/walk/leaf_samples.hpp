// SPDX-License-Identifier: Apache-2.0
// Samples the leaves that one reader's answers come from: keeps one of 64, a bounded number, until
// its owner collects them (kinds/map/write/leaf_heat.hpp).
//
// Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kinds/map/format/node.hpp"
#include "wire/one_sided.hpp"

namespace espalier::tree {

class LeafSamples {
 public:
  static constexpr std::uint32_t kAnswersPerSample = 64;

  void answered(wire::Lid leaf) {
    if (--until_next_ != 0) return;
    until_next_ = kAnswersPerSample;
    if (count_ != wire::kSampledLeavesMax) leaves_[count_++] = leaf;
  }
  [[nodiscard]] std::span<const wire::Lid> leaves() const {
    return std::span(leaves_).first(count_);
  }
  void clear() { count_ = 0; }

 private:
  std::uint32_t until_next_ = kAnswersPerSample;
  std::size_t count_ = 0;
  std::array<wire::Lid, wire::kSampledLeavesMax> leaves_{};
};

}  // namespace espalier::tree
