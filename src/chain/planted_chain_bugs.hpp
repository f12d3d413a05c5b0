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
  fence_ignored,       // a new head serves while the previous one may still serve
  lease_ignored,       // a head serves although no member answers it
  old_beat_counts,     // a beat of the previous epoch, answered in this one, lets a head serve
  left_out_early,      // the head of the first epoch, before the others have what it began with
  gap_accepted,        // a record is taken although an earlier one is missing
  joined_early,        // a joining node is a member before it has all acknowledged records
  offer_forgotten,     // the tail goes on alone while its proposal may have made a joining node a
                       // member
  tail_restarts_sure,  // the same, for a tail that restarted in the epoch of its proposal
  offered_not_heard,  // a head serves while a joining node that the tail offered does not answer it
};

using base::planted;

}  // namespace espalier::chain
