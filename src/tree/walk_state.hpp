// SPDX-License-Identifier: Apache-2.0
// What walks keep on their way: lanes, and the slots of groups.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/task.hpp"
#include "tree/leaf_guess.hpp"
#include "tree/leaf_scan.hpp"
#include "tree/leaf_write.hpp"
#include "tree/map_core.hpp"
#include "tree/planted.hpp"
#include "tree/scan_ahead.hpp"

namespace espalier::tree {

/// A request on its way to a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const HeldVersion* held = nullptr;  // read as of this version; null: the newest released one
  wire::Ref hint{};                   // enter here first
  WriteCondition condition{};         // of a write

  /// Nothing but the request: no version to read, no place to enter, no condition.
  [[nodiscard]] bool plain() const {
    return held == nullptr && !hint && condition.kind == WriteCondition::Kind::none;
  }
};

/// What a walk is after.
enum class Goal : std::uint8_t { point, write, forward, backward };

/// Which items a scan wants besides its bounds.
struct ScanRange {
  bool has_low = false;
  bool has_high = false;
};

/// What only scans need; apart, so that the lanes of point operations stay small in the cache.
struct ScanState {
  SearchKey low;   // inclusive
  SearchKey high;  // exclusive
  ScanRange range;
  std::uint64_t remaining = 0;
  LeafScan leaf;
  ScanAhead ahead;  // in place, forward
  Item items[ScanAhead::kStepItems];
};

/// What a walk looks for, and as of when: all that idea 1 asks of a node.
struct Cursor {
  Goal goal = Goal::point;
  std::uint64_t read_version = 0;
  wire::Ref other_predecessor{};  // if the second of two turns out not to cover the key
  SearchKey key;                  // of scans, where they go on
};

struct Lane : Cursor {
  bool plain = false;          // an ascending read: version and heads of the fences decide at once
  bool finding_floor = false;  // first leg of floor and scan_floor
  bool stored_value = false;
  bool starved = false;  // waits for memory, and holds no epoch
  std::uint32_t tick = 0;
  wire::Ref hint{};
  WalkRequest task;
  Completion answer;
  wire::ValueRef value{};  // of a write with an out-of-line value
  std::uint32_t attempts = 0;
  wire::Lid lid = 0;  // not in place: what to look up where there is no reference; 0: the root
  ScanState scan;
  base::WalkTask walk;
};

/// A request on its way through the stages of a group (group.hpp).
struct alignas(64) GroupSlot : Cursor {
  bool arriving = false;   // at the leaf that it will ask
  bool first_leaf = true;  // of a scan
  const Request* request = nullptr;
  Handler* handler = nullptr;
  std::uint64_t entry = 0;  // of the page table: where the next node is named; 0: it is `ref`
  wire::Ref ref{};
  GroupChoice choice;
  LeafProbe probe;
  std::uint32_t asked = 0;    // of a scan's leaf: up to here it was asked for
  std::uint64_t planned = 0;  // and about here the scan ends, or behind the leaf
  wire::Lid lid = 0;          // of the node that is asked
  LeafGuess::Guess guess;
  std::uint64_t remaining = 0;  // items that a scan may still deliver
  std::uint64_t items = 0;      // that it has delivered
};

/// Requests that take the stages together.
struct Group {
  std::vector<GroupSlot> slots;
  std::size_t count = 0;  // in use
  std::uint32_t tick = 0;
  [[nodiscard]] std::span<GroupSlot> in_use() { return {slots.data(), count}; }
};

}  // namespace espalier::tree
