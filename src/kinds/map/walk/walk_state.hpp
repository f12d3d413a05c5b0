// SPDX-License-Identifier: Apache-2.0
// The state of a walk.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.hpp"
#include "kinds/map/node/leaf_scan.hpp"
#include "kinds/map/walk/scan_ahead.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::tree {

/// The kind of a walk.
enum class Goal : std::uint8_t { point, write, forward, backward };

/// Which bounds a scan has.
struct ScanRange {
  bool has_low = false;
  bool has_high = false;
};

/// State that only scans need; separate, so that lanes of point operations stay small in the cache.
struct ScanState {
  SearchKey low;   // inclusive
  SearchKey high;  // exclusive
  ScanRange range;
  std::uint64_t remaining = 0;
  std::uint32_t leaves = 0;  // remote: number of leaves passed
  LeafScan leaf;
  LeafWindow window{};               // remote: the part of the leaf that was read
  bool whole_leaf = false;           // the leaf was read in one piece
  const SearchKey* bound = nullptr;  // the far bound, if the leaf covers it
  std::string_view delivered{};      // remote: the last key of this leaf that was delivered
  ScanAhead ahead;                   // in place, forward
  Item items[ScanAhead::kStepItems];
};

/// What a walk looks for, and at which version: the input of every check by idea 1.
struct Cursor {
  Goal goal = Goal::point;
  std::uint64_t read_version = 0;
  wire::Ref other_predecessor{};  // the first of two, tried if the second does not cover the key
  SearchKey key;                  // of a scan: where it continues
};

/// A walk in flight, or a free slot for one.
struct Lane : Cursor {
  bool finding_floor = false;  // first leg of floor and scan_floor
  bool stored_value = false;
  std::uint64_t starving_since_ns = 0;  // when the first attempt found no memory
  std::uint64_t fed_ns = 0;             // when memory was last reclaimed for it
  bool starved = false;                 // waits for memory without holding an epoch
  std::uint32_t tick = 0;
  wire::Ref hint{};
  WalkRequest task;
  Completion answer;
  wire::ValueRef value{};  // of a write with an out-of-line value
  std::uint32_t attempts = 0;
  wire::Lid lid = 0;         // remote: node to look up if there is no reference; 0: the root
  std::uint32_t level = 0;   // remote: expected level of the next node
  bool has_version = false;  // remote: the read version has arrived
  bool past_cache = false;   // remote: the cache misled it
  ScanState scan;
  base::WalkTask walk;
};

}  // namespace espalier::tree
