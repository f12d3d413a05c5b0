// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the memory at a time (base/planted.hpp).
#pragma once

#include <cstdint>

#include "base/planted.hpp"

namespace espalier::memory {

enum class Bug : std::uint8_t {
  none,
  extent_changes_class,       // an empty extent of nodes is cut into values
  release_out_of_order,       // releases its own version without waiting for earlier ones
  holds_without_end,          // a hold of releases never times out
  hold_ignored,               // versions are released while one stands
  hold_end_releases_nothing,  // versions done meanwhile wait for the next write
  released_before_durable,    // readers see what a crash can still lose
  rise_releases_nothing,      // durable versions wait for the next write
  stamp_at_unlink,            // rule 5: stamped before the superseding version is released
  lease_not_counted,          // rule 4: a leased epoch does not keep memory from being used again
  dropped_freed_at_once,      // rule 5: although a lease may still read it
  pin_not_counted,            // buffers are freed although their epoch is pinned
  snapshot_not_held,          // old versions are freed although a snapshot needs them
  snapshots_never_yield,      // a write that finds no memory expires no snapshot
  snapshot_expiry_ignored,    // a walk goes on at a version that has expired
  expiry_not_stamped,         // stamped buffers are freed under walks at that version
};

using base::planted;

}  // namespace espalier::memory
