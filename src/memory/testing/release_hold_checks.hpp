// SPDX-License-Identifier: Apache-2.0
// What must hold of a clock's holds, as checks that tests run on a good one and on a broken one.
// Time is the test's.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/testing/version_clock_checks.hpp"

namespace espalier::memory {

/// A clock with a time source that the test advances.
class HeldClock : public ClockUnderTest {
 public:
  HeldClock() {
    now() = 1'000'000'000;
    clock.set_time([]() noexcept { return now().load(); });
  }
  static std::atomic<std::uint64_t>& now() {
    static std::atomic<std::uint64_t> ns{0};
    return ns;
  }
  static void pass(std::uint64_t ns) { now() += ns; }
  VersionClock* operator->() { return &clock; }
};

/// Whether writes wait while a hold stands, and are all released when it is ended.
inline bool a_hold_keeps_versions_back() {
  HeldClock clock;
  const std::uint64_t before = clock.write();
  const std::uint64_t hold = clock->hold();
  clock.write();
  clock.write();
  bool good = hold != 0 && clock->released() == before && clock->released_now() == before;
  good = good && clock->end_hold(hold);
  return good && clock->released() == before + 2;
}

/// Whether a hold whose client is silent ends by its time, for a writer that only looks.
inline bool a_hold_ends_by_itself() {
  HeldClock clock;
  const std::uint64_t hold = clock->hold();
  const std::uint64_t written = clock.write();
  bool good = clock->released_now() < written;
  HeldClock::pass(ReleaseHold::kLongestNs - 1);
  good = good && clock->released_now() < written;
  HeldClock::pass(1);
  good = good && clock->released_now() == written;
  return good && !clock->end_hold(hold);  // too late: it did not stand until now
}

/// Whether a client that asks at every moment of a second stops writes for at most a fiftieth of
/// it.
inline bool holds_are_seldom() {
  HeldClock clock;
  constexpr std::uint64_t kStepNs = 10'000;
  constexpr std::uint64_t kSteps = 100'000;
  std::uint64_t stopped = 0;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    static_cast<void>(clock->hold());
    const std::uint64_t written = clock.write();
    if (clock->released_now() < written) ++stopped;
    HeldClock::pass(kStepNs);
    static_cast<void>(clock->released_now());
  }
  return stopped != 0 && stopped <= kSteps / 50;
}

}  // namespace espalier::memory
