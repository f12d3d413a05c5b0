// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule at a time (base/planted.hpp): of what sessions are given, of what
// steps post to peers, of the places of what comes from these, of copies of objects, of recovery,
// of answers that wait.
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::offload {

enum class Bug : std::uint8_t {
  none,
  lease_without_end,  // rule 4: one that is not renewed holds memory back for ever
  lease_not_fenced,   // rule 4: a lease ends while its reader's key is good

  // Of posts to peers (peer_posts.hpp).
  peer_post_overtakes,    // what finds no room keeps nothing behind it waiting
  peer_failure_believed,  // a post has taken effect, whatever the link says

  // Of requests that come over other nodes (scheduler.hpp).
  hops_wait_for_clients,  // they are not taken while clients have all their places
  hops_share_places,      // of one hop and of two they have the same places
  hop_place_kept,         // a place is not given back when its request has ended

  // Of reads by datagrams (kinds/map/offload/datagram_reads.cpp).
  datagram_to_unproved,  // a read is answered wherever it came from

  // Of answers that wait for records (scheduler_durable.cpp).
  answer_before_release,       // they are given when they come
  waiting_answers_last_first,  // the newest of a connection is given first
  sleeps_without_listening,    // a worker sleeps, and is not woken when more is durable

  // Of copies of objects (object_copy.hpp).
  copy_waits_for_nothing,       // of records before it that are not visible yet
  copy_without_slots,           // of an encrypted table that were given and have no rows
  copy_without_reserved,        // versions that its object has reserved may come again
  copy_of_dropped_object_open,  // it does not say that what it has by half was dropped

  // Of records that several threads apply (parallel_redo.hpp).
  redo_barrier_passed,  // what makes and drops objects waits for no other record
};

using base::planted;

}  // namespace espalier::offload
