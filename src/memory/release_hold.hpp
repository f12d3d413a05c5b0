// SPDX-License-Identifier: Apache-2.0
// A hold of releases: while one stands, a clock's read version does not rise, so that a client may
// look at several nodes as of one moment (docs/design/shards.md). It ends by itself after a
// millisecond, whatever its client does, and the next one comes 50 ms after it began at the
// earliest: so writers wait for at most a fiftieth of the time, whoever asks and however often.
//
// A hold is a help, and no promise: a version that was on its way when it was granted may still be
// released. Who relies on it asks in the end whether the read version is still that of the grant.
//
// No thread ends it: writers that wait for a release look, and so does who writes next. What nobody
// waits for may be released later.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/clock.hpp"
#include "memory/planted_memory_bugs.hpp"

namespace espalier::memory {

class ReleaseHold {
 public:
  static constexpr std::uint64_t kLongestNs = 1'000'000;
  static constexpr std::uint64_t kApartNs = 50'000'000;  // from one grant to the next

  /// The clock that it goes by; tests have one of their own. Set before anybody uses it.
  std::uint64_t (*now_ns)() noexcept = base::monotonic_ns;

  /// Whether one stands, in time or not. Cost: one load.
  [[nodiscard]] bool stands() const { return until_ns_.load() != 0; }

  /// The number of a new one; 0: the last one began too short a time ago.
  [[nodiscard]] std::uint64_t grant() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t now = now_ns();
    const bool too_early = granted_before_ && now - granted_ns_ < kApartNs;
    if (too_early && !planted(Bug::holds_without_end)) return 0;
    granted_before_ = true;
    granted_ns_ = now;
    until_ns_.store(now + kLongestNs);
    return ++number_;
  }
  /// Ends it, if it is this one. Returns whether it stood until now.
  [[nodiscard]] bool end(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number != number_ || !stands()) return false;
    const bool in_time = now_ns() < until_ns_.load();
    until_ns_.store(0);
    return in_time;
  }
  /// Ends it if it has stood its time. Returns whether none stands now.
  [[nodiscard]] bool end_overdue() {
    if (planted(Bug::holds_without_end)) return !stands();
    const std::uint64_t until = until_ns_.load();
    if (until == 0) return true;
    if (now_ns() < until) return false;
    const std::lock_guard lock(mutex_);
    // Another may have been granted meanwhile, which has its own time.
    if (until_ns_.load() == until) until_ns_.store(0);
    return !stands();
  }

 private:
  std::atomic<std::uint64_t> until_ns_{0};  // 0: none stands
  std::mutex mutex_;                        // guards all below, and the changes of until_ns_
  std::uint64_t number_ = 0;
  std::uint64_t granted_ns_ = 0;
  bool granted_before_ = false;
};

}  // namespace espalier::memory
