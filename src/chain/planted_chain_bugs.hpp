// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of chains at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::chain {

enum class Bug : std::uint8_t {
  none,
  acknowledged_early,  // by the head's disk, before the tail has it
  old_epoch_accepted,  // by a member that has sealed it
  head_reads_early,    // a new head serves before the tail has acknowledged all that it holds
  fence_ignored,       // a new head serves while the one before may still serve
  lease_ignored,       // a head serves however long no member has answered it
  old_beat_counts,     // a beat of the epoch before, answered in this one, lets a head serve
  left_out_early,      // the head of the first epoch, before the others have what it began with
  gap_accepted,        // a record is taken though one before it has not come
  joined_early,        // one that joins is a member before it has all that is acknowledged
  offer_forgotten,     // the tail goes on alone while who joins may be a member by its proposal
  tail_restarts_sure,  // likewise, of a tail that was started again in the epoch of its proposal
  offered_not_heard,  // a head serves while the tail does not hear who may have joined by its offer
};

using base::planted;

}  // namespace espalier::chain
