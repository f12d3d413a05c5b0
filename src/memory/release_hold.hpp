// SPDX-License-Identifier: Apache-2.0
// A hold of releases: while one stands, a clock's read version does not rise, so that a client can
// read several nodes as of one moment (docs/design/shards.md). It ends by itself after a
// millisecond, whatever its client does, and the next one is granted 50 ms after its begin at the
// earliest. So holds delay writers for at most a fiftieth of the time, regardless of the number of
// clients and requests.
//
// A hold is best effort: a release already under way when it was granted may still happen. A client
// that relies on it checks in the end that the read version is still that of the grant.
//
// No thread ends overdue holds: writers that wait for a release check, and so does the next writer.
// Versions that no thread waits for may be released later.
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

  /// The time source; tests set their own. Set before first use.
  std::uint64_t (*now_ns)() noexcept = base::monotonic_ns;

  /// Whether a hold stands, overdue or not. Cost: one load.
  [[nodiscard]] bool stands() const { return until_ns_.load() != 0; }

  /// Grants a hold and returns its number; 0: the last one began too recently.
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
  /// Ends this hold, if it stands. Returns whether it stood until now.
  [[nodiscard]] bool end(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (number != number_ || !stands()) return false;
    const bool in_time = now_ns() < until_ns_.load();
    until_ns_.store(0);
    return in_time;
  }
  /// Ends an overdue hold. Returns whether none stands now.
  [[nodiscard]] bool end_overdue() {
    if (planted(Bug::holds_without_end)) return !stands();
    const std::uint64_t until = until_ns_.load();
    if (until == 0) return true;
    if (now_ns() < until) return false;
    const std::lock_guard lock(mutex_);
    // Another hold may have been granted meanwhile, with its own deadline.
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
