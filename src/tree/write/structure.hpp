// SPDX-License-Identifier: Apache-2.0
// Changes of the tree's structure: splits, giving to siblings, merges, and writes of many keys.
//
// All of them hold the map's structure lock. That one lock is enough: a leaf takes about a hundred
// writes between two changes of structure, and nobody else ever waits for it (readers and writers
// of single leaves do not take it). docs/design/tree.md weighs the alternatives.
//
// A change builds all new nodes beside the old ones, takes one version, makes the new nodes live
// under it, and swaps each changed subtree in by one page-table write. Readers at older versions
// are led from the new nodes to their predecessors [Honeycomb §3.4].
//
// Until the version is taken, a change may find no memory, of the store or of the process: then it
// gives back what it took, unlocks its leaves, and nothing has changed. From then on it asks for
// none. A map's sink is asked for room first of all, before any lock.
#pragma once

#include <span>
#include <vector>

#include "tree/write/leaf_write.hpp"

namespace espalier::tree {

/// Does a write that needs a change of structure. Requires: as write_to_leaf. Waits for locks.
WriteOutcome write_with_restructure(ThreadContext& context, MapCore& map,
                                    const WriteIntent& intent) noexcept;

/// A condition on one key of a batch.
struct KeyCondition {
  const SearchKey* key = nullptr;
  Condition condition{};
};

struct BatchOutcome {
  WriteStatus status = WriteStatus::busy;
  std::uint64_t version = 0;
  std::uint64_t wait_for = 0;
  std::uint32_t failed_condition = 0;  // if condition_failed
  Code refusal = Code::invalid;        // if refused: what the map's sink says
  bool existed = false;                // whether any of the keys existed
  /// A key in each leaf that erases have left so little that it may be merged away.
  std::vector<const SearchKey*> thin;
};

/// Applies all writes under one version if all conditions hold.
/// Requires: writes ascend by key, each key once; the worker's epoch is exposed.
BatchOutcome write_batch(ThreadContext& context, MapCore& map, std::span<const WriteIntent> writes,
                         std::span<const KeyCondition> conditions) noexcept;

/// Merges the leaf of this key with a neighbour if it holds little and both fit one leaf. Nobody
/// can read a difference. Returns whether it did; where there is no memory for it, or no room for
/// the record of its version, it does nothing.
/// Requires: the worker's epoch is exposed. Waits for locks.
bool merge_thin_leaf(ThreadContext& context, MapCore& map, const SearchKey& key) noexcept;

}  // namespace espalier::tree
