// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the region table, of the transports `roce` and `shm`, or of links
// that carry rings and results, at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::fabric {

enum class Bug : std::uint8_t {
  none,
  atomic_done_again,          // a duplicate of an atomic is executed, not answered from memory
  gap_accepted,               // a PSN beyond the expected one is executed
  acknowledgement_is_answer,  // a READ or atomic ends by an acknowledgement of what is behind it
  read_resumes_elsewhere,     // what is missing of a READ is asked for from its beginning
  not_ready_takes_message,    // a SEND that found no receive counts as executed
  peer_of_any_port,           // any port of the peer's machine is taken for the peer
  retries_in_silence_only,    // what the peer says again and again to be missing is sent for ever
  any_psn_in_window,          // whatever its PSN, a packet is answered

  // Of connections over `roce` whose peer may not be where it says.
  cookie_of_anybody,      // a REQ with any cookie is one of a proven address
  unproven_peer_flooded,  // what an address sent does not bound what is sent there
  messages_served_first,  // connection messages come before the packets of pairs, all of them

  // Of void keys (region_table.hpp).
  void_key_serves_bytes,  // a READ by a void key brings what lies there
  void_waits_for_nobody,  // make_void() returns while accesses go on
  void_seen_before_only,  // a READ over `shm` does not look again after its last byte

  // Of WRITEs into persistent memory (placed_write.hpp).
  acknowledged_before_fence,  // what was stored past the cache is not waited for
  persistent_in_cache,        // what should go past the cache is stored through it

  // Of shared keys (shared_map.hpp).
  shared_keys_outlive_own,    // a session that has lost its own key reads by the shared ones
  changed_duplicate_dropped,  // a duplicate that carries another address is no duplicate
  shared_read_of_any_length,  // it may have more packets for answer than one

  // Of posts that are not all signalled (post_queue.hpp).
  failed_post_believed,  // a completion counts as success, whatever its status
  atomic_posted_again,   // an atomic goes twice, as if it had been lost
  last_not_signalled,    // what is added last before a doorbell may have no completion behind it

  // Of links (rings/ring_link.hpp).
  slots_not_mirrored_again,  // what an earlier pair may not have delivered is taken for delivered
  delivered_too_far,         // a slot counts as delivered before it is in place
  credit_without_delivery,   // a writer may use slots again that are only mirrored, not read

  // Of results that are written beside the rings, by their pair
  // (kinds/table/offload/result_host.hpp).
  result_told_first,         // a message names a block that is written when the next one comes
  result_not_written_again,  // what an earlier pair may not have written is taken for written

  // Of links with hostile peers.
  note_of_any_ring,        // whatever ring a note names is taken for the first
  note_by_any_verb,        // slots may be sent where they are to be written, and the other way
  note_of_any_slot,        // a note may name slots beyond all that the ring holds
  credit_of_any_length,    // a credit need not be 8 bytes
  session_of_any_rings,    // a client that names a session gets it with any ring sizes
  one_domain_for_all,      // through the pair of one session the memory of others is reached
  refused_not_closed,      // a pair that was made to refuse is dropped with what it has taken
  posts_taken_by_anybody,  // nothing is reserved for later sessions
  challenge_repeated,      // a client gets the same challenge as others
  proof_not_checked,       // a client that claims a name is taken for it
  hello_taken_twice,       // replay: a captured hello is accepted a second time
  hello_taken_late,        // replay: a delayed hello is accepted after a later one
  receives_held_by_all,    // peers with unfinished messages leave no receives to others
};

using base::planted;

}  // namespace espalier::fabric
