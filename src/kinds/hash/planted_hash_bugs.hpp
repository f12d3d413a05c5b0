// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of hash maps at a time (base/planted.hpp), and moments at which
// tests of the same build variant may act.
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
  moved_bin_answered,          // a bin that was moved answers for what it no longer has
  changes_ignored,             // a miss is believed although slots moved meanwhile
  changes_not_counted,         // a slot moves inside a bin, and its header does not say so
  generation_not_confirmed,    // a record is believed whatever its generation says
  answer_unreleased,           // a record answers for versions before it
  purged_ignored,              // a reader that came too late says what is not so
  holds_ignored,               // states that a snapshot needs are taken out
  acknowledge_before_release,  // a write returns before its version is released
  holding_ignored,             // states are taken out while a snapshot is being taken
  record_freed_at_once,        // what was unlinked is free although readers may be there
  owner_not_asked_again,       // a lock's owner enters although it may be the owner no more
  owner_not_awaited,           // a lock is taken away from an owner that is inside
  record_after_release,        // a record is handed over when readers see what it says
  record_outside_lock,         // a record is handed over when other writers may come before it
  looks_without_end,           // a reader begins again as often as writers have it
  doubles_delivered,           // a walk delivers a slot that moves from both its places
  hint_believed,               // what was found ahead of a get's turn is answered as it was then
  links_not_awaited,           // a reader elsewhere believes a bucket that came before its link
  buckets_read_once,           // and a miss of buckets as they came first
  line_before_buckets,         // and one by a partition's line that came before them
  kept_record_believed,        // and a record that is remembered, whatever lies there now
  any_record_kept,             // and remembers records that nothing has named
  own_clock_read,              // and the version in the header of a map that shares its clock
  other_term_believed,         // and what was read under a lease that was lost
  spare_links_not_first,       // what comes back is any write's, before erases have what they need
};

/// Steps between which another thread may do anything.
enum class Moment : std::uint8_t {
  entry_read,       // of a read that knows its segment, and has not looked at the bin
  bin_read,         // of a read that has seen the bin's header, and no slot
  bucket_read,      // of a read that has searched a bucket, and goes on to the next of the bin
  slot_doubled,     // of a write that moves a slot, and has it at its old place and its new one
  before_done,      // of a write that has stored its slot
  owner_seen,       // of a thread that has seen that it owns a lock
  lock_awaited,     // of a thread that waits until another leaves a lock
  release_awaited,  // of a write that waits until its version is released
  hold_read,        // of a snapshot that has its version, and is not registered
};

using base::planted;

#if defined(ESPALIER_PLANTED_BUGS)
/// What a test wants to happen when this thread reaches a moment. Not called within itself.
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
