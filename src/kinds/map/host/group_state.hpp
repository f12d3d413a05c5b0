// SPDX-License-Identifier: Apache-2.0
// State of requests that are executed in groups (group.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/map/host/leaf_guess.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

/// A request in a group.
struct alignas(64) GroupSlot : Cursor {
  bool arriving = false;   // on its way to a leaf
  bool first_leaf = true;  // of a scan: at its first leaf
  bool unproven = false;   // the leaf's fences tie with the key, and were not compared yet
  bool probed = false;     // whether `probe` is of leaf `ref`
  const Request* request = nullptr;
  Handler* handler = nullptr;
  std::uint64_t entry = 0;  // page-table entry of the next node; 0: it is `ref`
  wire::Ref ref{};
  wire::Ref hint{};         // where to enter; none: the root
  std::uint32_t level = 0;  // level of the node where it enters
  GroupChoice choice;
  LeafProbe probe;
  std::uint32_t asked = 0;    // of a scan's leaf: prefetched up to this offset
  std::uint64_t planned = 0;  // estimated end of the scan, or behind the leaf
  wire::Lid lid = 0;          // of the current node
  LeafGuess::Guess guess;
  std::uint64_t remaining = 0;  // items that a scan may still deliver
  std::uint64_t items = 0;      // items delivered
  wire::ValueRef value{};       // of a write: its stored out-of-line value; 0: none
  std::string_view stored{};    // of a get: the out-of-line value
  std::uint64_t version = 0;    // of a get: the item's version
};

/// Requests that execute the stages together.
struct Group {
  std::vector<GroupSlot> slots;
  std::size_t count = 0;  // in use
  bool hinted = false;    // whether any of them has a hint
  std::uint32_t tick = 0;
  [[nodiscard]] std::span<GroupSlot> in_use() { return {slots.data(), count}; }
};

}  // namespace espalier::tree
