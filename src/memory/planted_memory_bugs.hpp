// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the memory at a time, so that tests can show that they notice.
// They exist only in the build variant of the tests (ESPALIER_PLANTED_BUGS); elsewhere `planted` is
// a constant false and costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::memory {

enum class Bug : std::uint8_t {
  none,
  extent_changes_class,  // an empty extent of nodes is cut into values
};

#if defined(ESPALIER_PLANTED_BUGS)
inline std::atomic<Bug> active_bug{Bug::none};
[[nodiscard]] inline bool planted(Bug bug) {
  return active_bug.load(std::memory_order_relaxed) == bug;
}
#else
[[nodiscard]] constexpr bool planted(Bug) { return false; }
#endif

}  // namespace espalier::memory
