// SPDX-License-Identifier: Apache-2.0
// Schedules a message once an hour, by its owner's clock.
//
// Thread: one.
#pragma once

#include <cstdint>

namespace espalier::tools {

class Hourly {
 public:
  static constexpr std::uint64_t kHourNs = std::uint64_t{3600} * 1'000'000'000;

  /// Due an hour from now for the first time.
  explicit Hourly(std::uint64_t now_ns) : next_ns_(now_ns + kHourNs) {}

  /// Time until it is due.
  [[nodiscard]] std::uint64_t left_ns(std::uint64_t now_ns) const {
    return next_ns_ > now_ns ? next_ns_ - now_ns : 0;
  }
  /// Whether it is due. If so the next time is an hour from now: missed hours are skipped.
  [[nodiscard]] bool take(std::uint64_t now_ns) {
    if (left_ns(now_ns) != 0) return false;
    next_ns_ = now_ns + kHourNs;
    return true;
  }

 private:
  std::uint64_t next_ns_;
};

}  // namespace espalier::tools
