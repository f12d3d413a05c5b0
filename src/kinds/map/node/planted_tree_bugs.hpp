// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of the protocol each (base/planted.hpp), and hooks by which tests of
// the same build variant act between steps.
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
  skip_generation_check,       // rule 1: a hint's generation is not checked
  hint_not_checked,            // rule 1: the host enters at an unchecked hint from a client
  hint_believed,               // idea 1: the leaf that a hint names is not checked
  skip_map_check,              // rule 1: nodes of other maps answer
  read_version_before_epoch,   // rule 2
  stale_read_version,          // rule 2: reused from an earlier request
  read_version_kept,           // rule 2: a batch of walks reuses that of an earlier one
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
  miss_believed,               // idea 1: a leaf that does not cover a key reports it missing
  prefix_compared_short,       // only the first word of the separators' prefix is compared
  ignore_created,              // idea 1: a node answers for versions before it
  ignore_superseded,           // idea 1: a node answers for versions after it
  ignore_erase_marks,          // a marker in the log does not hide the item
  wrong_order_hint,            // the log is not in key order
  batch_in_two_versions,       // half of a batch becomes visible first
  conditions_before_lock,      // conditions are checked before the leaves are locked
  version_with_nodes,          // rule 2: unordered READs are treated as ordered
  lost_lease_kept,             // rule 4: a device ignores that a renewal was refused
  not_confirmed,               // rule 4: no confirming READ after the last byte
  generation_not_confirmed,    // rule 4: the generation in that READ is not checked
  value_not_confirmed,         // rule 4: no such READ for out-of-line values
  rest_not_confirmed,          // rule 4: none for a leaf's bytes that are read later
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

/// Steps between which another thread may run. A test acts there deterministically instead of
/// waiting for a rare interleaving.
enum class Moment : std::uint8_t {
  between_epoch_and_version,  // at the start of a walk
  leaf_chosen,                // the reference of the leaf is not read yet
  before_lock,                // a write is ready to lock
  before_payload,             // a log entry's value is not written yet
  before_version,             // a log entry is complete but for its version
  half_published,             // some entries of a batch are published
  feed_claimed,               // an entry of the feed is claimed but not written
};

using base::planted;

#if defined(ESPALIER_PLANTED_BUGS)
/// Called when this thread reaches a moment; not called recursively.
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
