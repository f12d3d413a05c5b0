// SPDX-License-Identifier: Apache-2.0
// Changes of the tree's structure: splits, redistributions among siblings, merges, and multi-key
// writes.
//
// All of them hold the map's structure lock. One lock suffices: a leaf takes about a hundred writes
// between two changes of structure, and no other operation waits for it (readers and writers of
// single leaves do not take it). docs/design/tree.md discusses alternatives.
//
// A change builds all new nodes beside the old ones, takes one version, makes the new nodes live
// under it, and swaps in each changed subtree by one page-table write. Readers at older versions
// follow references from the new nodes to their predecessors [Honeycomb §3.4].
//
// Until the version is taken, memory of the store or of the process may run out: the change then
// returns what it took, unlocks its leaves, and has changed nothing. Afterwards it does not
// allocate. Room in a map's sink is reserved first, before any lock.
#pragma once

#include <span>
#include <vector>

#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

/// Performs a write that needs a change of structure. Requires: as write_to_leaf. Waits for locks.
WriteOutcome write_with_restructure(ThreadContext& context, MapCore& map,
                                    const WriteIntent& intent) noexcept;
/// Performs the write at `leaf`, changing the tree's structure if needed. `known`: see
/// newest_state().
/// Requires: as write_to_leaf.
inline WriteOutcome write_in(ThreadContext& context, MapCore& map, wire::Ref leaf,
                             const WriteIntent& intent, const LeafProbe* known = nullptr) noexcept {
  WriteOutcome outcome = write_to_leaf(context, map, map.at(leaf.offset()), intent, known);
  if (outcome.status == WriteStatus::restructure) {
    outcome = write_with_restructure(context, map, intent);
    if (outcome.status == WriteStatus::busy) outcome.status = WriteStatus::moved;
  }
  return outcome;
}

struct KeyCondition {
  const SearchKey* key = nullptr;
  Condition condition{};
};

struct BatchOutcome {
  WriteStatus status = WriteStatus::busy;
  std::uint64_t version = 0;
  std::uint64_t wait_for = 0;
  std::uint32_t failed_condition = 0;  // if status is condition_failed
  Code refusal = Code::invalid;        // if refused: the error of the map's sink
  bool existed = false;                // whether any of the keys existed
  /// A key in each leaf that erases left so empty that it may be merged away.
  std::vector<const SearchKey*> thin;
};

/// Applies all writes under one version if all conditions hold.
/// Requires: writes ascend by key, each key once; the worker's epoch is exposed.
BatchOutcome write_batch(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
                         std::span<const KeyCondition> conditions) noexcept;

/// Merges the leaf of this key with a neighbour if it holds little and both fit one leaf. Readers
/// see no difference. Returns whether it did; without memory for it, or without room for the record
/// of its version, it does nothing.
/// Requires: the worker's epoch is exposed. Waits for locks.
bool merge_thin_leaf(ThreadContext& context, MapCore& map, const SearchKey& key) noexcept;

}  // namespace espalier::tree
