// SPDX-License-Identifier: Apache-2.0
// Numbers that count up and may come a little out of order: each is taken once.
//
// Thread: one at a time.
#pragma once

#include <cstdint>

namespace espalier::offload {

class SeenNumbers {
 public:
  /// Those further below the highest are not taken, whether they came or not.
  static constexpr std::uint32_t kWindow = 64;

  /// Whether this one comes for the first time. Of 0 it never is.
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
  std::uint64_t seen_ = 0;  // bit i: highest_ - i came
};

}  // namespace espalier::offload
