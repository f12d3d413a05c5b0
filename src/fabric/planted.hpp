// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the transport `roce`, or of links that carry rings, at a time, so
// that tests can show that they
// notice. They exist only in the build variant of the tests (ESPALIER_PLANTED_BUGS); elsewhere
// `planted` is a constant false and costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace espalier::fabric {

enum class Bug : std::uint8_t {
  none,
  atomic_done_again,          // a duplicate of an atomic is executed, not answered from memory
  gap_accepted,               // a PSN beyond the expected one is executed
  acknowledgement_is_answer,  // a READ or atomic ends by an acknowledgement of what is behind it
  read_resumes_elsewhere,     // what is missing of a READ is asked for from its beginning
  not_ready_takes_message,    // a SEND that found no receive counts as executed

  // Of links (offload/ring_link.hpp).
  lines_not_carried_again,  // what an earlier pair may not have delivered is taken for delivered
  landed_too_far,           // a line counts as landed before it is in place
  credit_without_landing,   // a writer may use lines again that are only carried, not read
};

#if defined(ESPALIER_PLANTED_BUGS)
inline std::atomic<Bug> active_bug{Bug::none};
[[nodiscard]] inline bool planted(Bug bug) {
  return active_bug.load(std::memory_order_relaxed) == bug;
}
#else
[[nodiscard]] constexpr bool planted(Bug) { return false; }
#endif

}  // namespace espalier::fabric
