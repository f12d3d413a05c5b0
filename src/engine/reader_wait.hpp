// SPDX-License-Identifier: Apache-2.0
// How long a streamed answer waits for a client that does not take it.
//
// Not by writable(): that waits for as long as the client likes, and what streams holds a place, or
// memory that is to go back.
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"

namespace espalier::offload {

class ReaderWait {
 public:
  /// A client that takes nothing for so long gets no more.
  static constexpr std::uint64_t kTimeoutNs = 30'000'000'000;

  /// How often is looked at first: once a client has taken some of a ring, or given a buffer back,
  /// of which there are few.
  static constexpr std::uint64_t kSoonNs = 200'000;
  static constexpr std::uint64_t kVerySoonNs = 20'000;

  /// When to look for room again, on base::monotonic_ns(); nothing: the client took nothing for
  /// `timeout_ns`. Once for each step that finds none.
  [[nodiscard]] std::optional<std::uint64_t> next_look(std::uint64_t timeout_ns,
                                                       std::uint64_t soon_ns = kSoonNs) {
    const std::uint64_t now = base::monotonic_ns();
    if (blocked_since_ns_ == 0) blocked_since_ns_ = now;
    const std::uint64_t blocked_ns = now - blocked_since_ns_;
    if (blocked_ns > timeout_ns) return std::nullopt;
    return now + (blocked_ns < kSoonForNs ? soon_ns : kLaterNs);
  }
  /// Whether there was none for so long.
  [[nodiscard]] bool waited(std::uint64_t ns) const {
    return blocked_since_ns_ != 0 && base::monotonic_ns() - blocked_since_ns_ >= ns;
  }
  /// There was room.
  void took() { blocked_since_ns_ = 0; }

 private:
  static constexpr std::uint64_t kLaterNs = 10'000'000;
  static constexpr std::uint64_t kSoonForNs = 50'000'000;

  std::uint64_t blocked_since_ns_ = 0;  // the client takes nothing; 0: it does
};

}  // namespace espalier::offload
