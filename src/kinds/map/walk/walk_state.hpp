// SPDX-License-Identifier: Apache-2.0
// What a walk keeps on its way.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.hpp"
#include "kinds/map/node/leaf_scan.hpp"
#include "kinds/map/walk/scan_ahead.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::tree {

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
  std::uint32_t leaves = 0;  // not in place: that were passed
  LeafScan leaf;
  LeafWindow window{};               // not in place: what of the leaf has been brought,
  bool whole_leaf = false;           // it was all brought at once,
  const SearchKey* bound = nullptr;  // the far end of the range, if the leaf has it,
  std::string_view delivered{};      // and the last key of this leaf that was handed over
  ScanAhead ahead;                   // in place, forward
  Item items[ScanAhead::kStepItems];
};

/// What a walk looks for, and as of when: all that idea 1 asks of a node.
struct Cursor {
  Goal goal = Goal::point;
  std::uint64_t read_version = 0;
  wire::Ref other_predecessor{};  // if the second of two turns out not to cover the key
  SearchKey key;                  // of scans, where they go on
};

/// A walk in flight, or the place of one.
struct Lane : Cursor {
  bool finding_floor = false;  // first leg of floor and scan_floor
  bool stored_value = false;
  std::uint64_t starving_since_ns = 0;  // attempts: when the first found no memory
  std::uint64_t fed_ns = 0;             // when memory was last sought for it
  bool starved = false;                 // waits for memory, and holds no epoch
  std::uint32_t tick = 0;
  wire::Ref hint{};
  WalkRequest task;
  Completion answer;
  wire::ValueRef value{};  // of a write with an out-of-line value
  std::uint32_t attempts = 0;
  wire::Lid lid = 0;  // not in place: what to look up where there is no reference; 0: the root
  std::uint32_t level = 0;   // not in place: of the node that the walk expects to come to
  bool has_version = false;  // not in place: the read version has come
  bool past_cache = false;   // not in place: what is remembered has misled it
  ScanState scan;
  base::WalkTask walk;
};

}  // namespace espalier::tree
