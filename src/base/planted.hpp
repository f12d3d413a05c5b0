// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule at a time, so that tests can show that they notice. A module lists
// its own in an enum `Bug`, of which the first is `none`; planted_*_bugs.hpp has it.
//
// They exist only in the build variant of the tests (ESPALIER_PLANTED_BUGS); elsewhere `planted` is
// a constant false and costs nothing.
#pragma once

#include <atomic>

namespace espalier::base {

#if defined(ESPALIER_PLANTED_BUGS)
/// Which of a module's bugs is planted now.
template <class Bug>
inline std::atomic<Bug> active_bug{Bug::none};

template <class Bug>
[[nodiscard]] bool planted(Bug bug) {
  return active_bug<Bug>.load(std::memory_order_relaxed) == bug;
}

/// Plants a bug until it is destroyed; of each module one at a time.
template <class Bug>
class Planted {
 public:
  explicit Planted(Bug bug) { active_bug<Bug> = bug; }
  ~Planted() { active_bug<Bug> = Bug::none; }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};
#else
template <class Bug>
[[nodiscard]] constexpr bool planted(Bug) {
  return false;
}
#endif

}  // namespace espalier::base
