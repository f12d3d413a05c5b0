// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule at a time (base/planted.hpp), for tests: leases, posts to peers,
// places of requests with hops, copies of objects, recovery, and answers that wait for durability.
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::offload {

enum class Bug : std::uint8_t {
  none,
  lease_without_end,  // rule 4: an expired lease holds memory forever
  lease_not_fenced,   // rule 4: a lease ends while its reader's key is valid

  // Of posts to peers (peer_posts.hpp).
  peer_post_overtakes,    // a post that finds no room does not block later ones
  peer_failure_believed,  // a post counts as done, whatever the link reports

  // Of requests that come over other nodes (scheduler.hpp).
  hops_wait_for_clients,  // not taken while clients have all their places
  hops_share_places,      // one hop and two hops share places
  hop_place_kept,         // a place is not released when its request has ended

  // Of reads by datagrams (kinds/map/offload/datagram_reads.cpp).
  datagram_to_unproved,  // a read is answered whatever its source address

  // Of answers that wait for records (scheduler_durable.cpp).
  answer_before_release,       // they are sent immediately
  waiting_answers_last_first,  // the newest of a connection is sent first
  sleeps_without_listening,    // a worker sleeps without registering for durability

  // Of copies of objects (object_copy.hpp).
  copy_waits_for_nothing,       // earlier records that are not visible yet are missed
  copy_without_slots,           // an encrypted table's slots without rows are lost
  copy_of_dropped_object_open,  // a partial copy does not record that the object was dropped

  // Of records that several threads apply (parallel_redo.hpp).
  redo_barrier_passed,  // records that create and drop objects wait for no other

  // Of versions after recovery (redo_target.hpp).
  versions_of_earlier_runs,        // items get versions that an earlier run gave to others
  recovered_versions_unrecorded,   // the next recovery may give those of this one to others
};

using base::planted;

}  // namespace espalier::offload
