// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the log at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::log {

enum class Bug : std::uint8_t {
  none,
  acknowledged_early,          // before the write that has the record has returned
  goes_on_in_old_segment,      // behind the cut, before blocks that lie there from earlier
  checksum_ignored,            // of a block
  removed_early,               // a segment that has a record which is still wanted
  recovered_unflushed,         // what recovery has read may be on its way to the disk still
  cache_believed,              // what recovery has read may be where a failed flush has left it
  header_late,                 // a segment gets its name before its header is durable
  limit_ignored,               // of a segment's records by where a later one begins
  lost_kept,                   // segments whose loss was accepted keep their names
  hole_cut,                    // a hole below the durable mark is taken for the torn tail
  salt_guessable,              // a client can make bytes that are a block
  acknowledged_after_failure,  // a write that has failed is taken for one that has not
  acknowledged_out_of_order,   // a write that has ended, before one that began before it
  mark_ahead,                  // a block's mark counts what is under way for durable

  // Of checkpoints.
  log_removed_early,       // segments go before the checkpoint has its name
  checkpoint_named_early,  // before the log is durable up to its end
  overlap_skipped,         // what was recorded while it was copied is not applied over it
};

using base::planted;

}  // namespace espalier::log
