// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the log at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::log {

enum class Bug : std::uint8_t {
  none,
  acknowledged_early,          // before the write of the record has returned
  goes_on_in_old_segment,      // behind the cut, before blocks that lie there from earlier
  checksum_ignored,            // of a block
  removed_early,               // a segment with a record that is still wanted
  recovered_unflushed,         // recovery relies on data still on its way to the disk
  cache_believed,              // recovery relies on pages that a failed flush left in the cache
  header_late,                 // a segment gets its name before its header is durable
  limit_ignored,               // records beyond the begin of a later segment count
  lost_kept,                   // segments whose loss was accepted keep their names
  hole_cut,                    // a hole below the durable mark is taken for the torn tail
  salt_guessable,              // a client can forge a block
  acknowledged_after_failure,  // a failed write counts as a successful one
  acknowledged_out_of_order,   // a write before an older one that is under way
  mark_ahead,                  // a block's mark counts writes under way as durable

  // Of checkpoints.
  log_removed_early,       // segments are removed before the checkpoint has its name
  checkpoint_named_early,  // before the log is durable up to its end
  overlap_skipped,         // records of the time of copying are not replayed over it
};

using base::planted;

}  // namespace espalier::log
