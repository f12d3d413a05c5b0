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
  slots_not_mirrored_again,  // what an earlier pair may not have delivered is taken for delivered
  delivered_too_far,         // a slot counts as delivered before it is in place
  credit_without_delivery,   // a writer may use slots again that are only mirrored, not read

  // Of links with hostile peers.
  note_of_any_ring,        // whatever ring a note names is taken for the first
  note_of_any_slot,        // a note may tell of slots beyond all that the ring holds
  credit_of_any_length,    // a credit need not be 8 bytes
  session_of_any_rings,    // who names a session gets it whatever rings he wants
  one_domain_for_all,      // through the pair of one session the memory of others is reached
  refused_not_closed,      // a pair that was made to refuse is dropped with what it has taken
  posts_taken_by_anybody,  // nothing is set aside for those who come after
  receives_held_by_all,    // those who leave messages unfinished leave no receive to others
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
