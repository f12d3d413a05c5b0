// SPDX-License-Identifier: Apache-2.0
// Replay window for increasing numbers that may arrive slightly out of order: each is accepted
// once.
//
// Thread: one at a time.
#pragma once

#include <cstdint>

namespace espalier::offload {

class SeenNumbers {
 public:
  /// Numbers that are so far below the highest are refused.
  static constexpr std::uint32_t kWindow = 64;

  /// Whether this number arrives for the first time. 0 is refused.
  [[nodiscard]] bool take(std::uint32_t number) {
    if (number > highest_) {
      const std::uint32_t up = number - highest_;
      seen_ = up < kWindow ? seen_ << up | 1 : 1;
      highest_ = number;
      return true;
    }
    const std::uint32_t below = highest_ - number;
    if (number == 0 || below >= kWindow || (seen_ >> below & 1) != 0) return false;
    seen_ |= std::uint64_t{1} << below;
    return true;
  }

 private:
  std::uint32_t highest_ = 0;
  std::uint64_t seen_ = 0;  // bit i: highest_ - i has arrived
};

}  // namespace espalier::offload
