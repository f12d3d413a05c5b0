// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the protocol at a time (base/planted.hpp), and moments at which
// tests of the same build variant may act.
#pragma once

#include <cstdint>

#include "base/planted.hpp"

#if defined(ESPALIER_PLANTED_BUGS)
#include <functional>
#include <utility>
#endif

namespace espalier::tree {

enum class Bug : std::uint8_t {
  none,
  skip_generation_check,       // rule 1: a hint's generation is not looked at
  hint_not_checked,            // rule 1: the host enters at whatever a hint from outside names
  hint_believed,               // idea 1: the leaf that a hint names is not asked if it may answer
  skip_map_check,              // rule 1: nodes of other maps answer
  read_version_before_epoch,   // rule 2
  stale_read_version,          // rule 2: kept from an earlier request
  read_version_kept,           // rule 2: what one batch of walks has read serves later ones
  version_before_payload,      // rule 3
  log_not_prefilled,           // rule 3
  value_freed_at_once,         // rule 5
  answer_unreleased,           // rule 6
  acknowledge_before_release,  // rule 7
  no_predecessor,              // rule 8
  root_without_predecessor,    // rule 8
  one_predecessor_of_two,      // rule 8
  descending_like_ascending,   // rule 9
  floor_stays_in_leaf,         // rule 9
  parts_of_many_versions,      // rule 10
  version_before_lock,         // rule 11
  own_clock_read,              // rule 2: the word in the header of a map that shares its clock
  skip_range_check,            // idea 1: a node answers for keys that it does not cover
  miss_believed,               // idea 1: a leaf that does not cover a key says that it is missing
  prefix_compared_short,       // of what separators begin with only the first word is compared
  ignore_created,              // idea 1: a node answers for versions before it
  ignore_superseded,           // idea 1: a node answers for versions after it
  ignore_erase_marks,          // a marker in the log does not hide the item
  wrong_order_hint,            // the log is not in key order
  batch_in_two_versions,       // half of a batch becomes visible first
  conditions_before_lock,      // conditions are checked before the leaves are locked
  version_with_nodes,          // rule 2: READs that may pass each other are taken for ordered
  lost_lease_kept,             // rule 4: a device takes a refused renewal for one that was granted
  not_confirmed,               // rule 4: no READ after the last byte
  generation_not_confirmed,    // rule 4: that READ succeeds, and its generation is not looked at
  value_not_confirmed,         // rule 4: of values out of line there is no such READ
  rest_not_confirmed,          // rule 4: of a leaf's bytes that are brought later there is none
  window_takes_what_follows,   // a part of a leaf delivers log entries of the part above it
  cache_trusted,               // a leaf that a cache leads to is not asked whether it may answer
  ahead_not_confirmed,         // rule 4: of leaves that are brought ahead there is no such READ
  ahead_kept,                  // rule 2: leaves that one scan had brought ahead serve the next
  belief_not_checked,          // a host that answers no renewal is believed for ever
  drop_not_shown,              // the header of a dropped map still says that it lives
  feed_before_table,           // the feed tells a change before the page table has it
  moved_node_kept,             // what a cache has of a node outlives its mapping
  feed_check_ignored,          // halves of two entries of the feed are taken for one
  record_outside_lock,         // a record is handed over when its leaves are unlocked
  record_after_release,        // a record is handed over when its version is released
  redo_key_twice_in_flight,    // records of one key are applied together, and pass each other
  redo_version_ignored,        // recovery gives out versions that records have
  appended_over_last_key,      // leaves are built of a key that the last leaf has already
  reserve_not_refilled,        // erases find no node in a store that recovery has filled
};

/// Steps between which another thread may do anything. A test that wants it done there, and not
/// once in a million times, does it itself.
enum class Moment : std::uint8_t {
  between_epoch_and_version,  // of a walk that begins
  leaf_chosen,                // of a request whose leaf's place is still to be read
  before_lock,                // of a write that has done all it does without the lock
  before_payload,             // of a log entry whose value is still to be written
  before_version,             // of a log entry that is whole, but for its version
  half_published,             // of a batch whose entries are being published
  feed_claimed,               // of an entry of the feed that is still to be written
};

using base::planted;

#if defined(ESPALIER_PLANTED_BUGS)
/// What a test wants to happen when this thread reaches a moment. Not called within itself.
inline thread_local std::function<void(Moment)> on_moment;
inline void reached(Moment moment) {
  if (!on_moment) return;
  const auto act = std::exchange(on_moment, nullptr);
  act(moment);
  on_moment = act;
}
#else
constexpr void reached(Moment) {}
#endif

}  // namespace espalier::tree
