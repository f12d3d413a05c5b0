// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of tables in switches at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::dataplane {

enum class Bug : std::uint8_t {
  none,
  separator_off_by_one,   // a key that equals a separator goes to the left of it
  icrc_not_updated,       // a redirected READ keeps the ICRC of what it was
  flip_waits_for_nobody,  // a copy of the tables is changed while frames use it

  // Of switches in a row (shim.hpp).
  other_generation_believed,  // a cursor of tables that this switch does not have is followed
  shim_not_removed,           // it goes on to the node
  frame_not_restored,         // the shim is taken out, and the lengths stay
  other_server_believed,  // a shim of another node than the frame goes to is followed; and a get
                          // in a datagram is led by the tables of another node

  // Of index followers, which fill tables, and of the node that these lead to
  // (index/index_follower.hpp, kinds/map/offload/index_host.hpp, kinds/map/offload/map_reads.hpp).
  moved_leaf_kept,          // an entry goes on naming where a leaf was that has moved
  entry_outlives_lease,     // the key of tables whose controller lost its lease is not made void
  entry_taken_at_its_word,  // the node does not ask the pool what begins where an entry leads
};

}  // namespace espalier::dataplane
