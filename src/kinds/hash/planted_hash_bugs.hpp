// SPDX-License-Identifier: Apache-2.0
// Fault injection: switches that break one rule of hash maps at a time (base/planted.hpp), and
// moments at which tests of the same build variant may act.
#pragma once

#include <cstdint>

#include "base/planted.hpp"

#if defined(ESPALIER_PLANTED_BUGS)
#include <functional>
#include <utility>
#endif

namespace espalier::hash {

enum class Bug : std::uint8_t {
  none,
  moved_bin_answered,          // a moved bin answers for keys that it no longer has
  changes_ignored,             // a miss is trusted although slots moved meanwhile
  changes_not_counted,         // a slot moves inside a bin without a change of its header
  generation_not_confirmed,    // a record is trusted whatever its generation
  answer_unreleased,           // a record answers for versions before it
  purged_ignored,              // a reader that is too late gives a wrong answer
  holds_ignored,               // states that a snapshot needs are taken out
  acknowledge_before_release,  // a write returns before its version is released
  holding_ignored,             // states are taken out while a snapshot is being taken
  record_freed_at_once,        // unlinked memory is freed although readers may be there
  owner_not_asked_again,       // a lock's owner enters although it may no longer be the owner
  owner_not_awaited,           // a lock is revoked from an owner that is inside
  record_after_release,        // a record is handed over after readers see its write
  record_outside_lock,         // a record is handed over when other writers may precede it
  looks_without_end,           // a reader restarts without limit
  doubles_delivered,           // a walk delivers a slot that moves from both its places
  hint_believed,               // the hint of a get is answered without a check
  links_not_awaited,           // a remote reader trusts a bucket that was read before its link
  buckets_read_once,           // and a miss in buckets that were read once
  line_before_buckets,         // and a miss by a partition's line that was read before them
  kept_record_believed,        // and a cached record, whatever lies there now
  any_record_kept,             // and caches records that nothing has named
  own_clock_read,              // and the version in the header of a map that shares its clock
  other_term_believed,         // and data read under a lease that was lost
  spare_links_not_first,       // freed links go to any write before the reserve for erases
};

/// Points at which another thread may do anything.
enum class Moment : std::uint8_t {
  entry_read,       // of a read that knows its segment, and has not read the bin
  bin_read,         // of a read that has read the bin's header, and no slot
  bucket_read,      // of a read that has searched a bucket, and continues with the next
  slot_doubled,     // of a write that moves a slot, which is at both places
  before_done,      // of a write that has stored its slot
  owner_seen,       // of a thread that has seen that it owns a lock
  lock_awaited,     // of a thread that waits until another leaves a lock
  release_awaited,  // of a write that waits until its version is released
  hold_read,        // of a snapshot that has its version, and is not registered
};

using base::planted;

#if defined(ESPALIER_PLANTED_BUGS)
/// A test's callback at a moment of this thread. Not called recursively.
inline thread_local std::function<void(Moment)> on_moment;
inline void reached(Moment moment) {
  if (!on_moment) return;
  const auto what = std::exchange(on_moment, nullptr);
  what(moment);
  if (!on_moment) on_moment = what;
}
#else
constexpr void reached(Moment) {}
#endif

}  // namespace espalier::hash
