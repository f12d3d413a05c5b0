// SPDX-License-Identifier: Apache-2.0
// Requests that take the stages of a walk together (group.hpp), and what they keep on their way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kinds/map/host/leaf_guess.hpp"
#include "kinds/map/walk/walk_state.hpp"

namespace espalier::tree {

/// A request on its way through the stages of a group.
struct alignas(64) GroupSlot : Cursor {
  bool arriving = false;   // at the leaf that it will ask
  bool first_leaf = true;  // of a scan
  bool unproven = false;   // the leaf's fences tie with the key, and were not asked yet
  bool probed = false;     // `probe` is of the leaf that `ref` names
  const Request* request = nullptr;
  Handler* handler = nullptr;
  std::uint64_t entry = 0;  // of the page table: where the next node is named; 0: it is `ref`
  wire::Ref ref{};
  wire::Ref hint{};         // where to enter; none: at the root
  std::uint32_t level = 0;  // of the node at which it enters
  GroupChoice choice;
  LeafProbe probe;
  std::uint32_t asked = 0;    // of a scan's leaf: up to here it was asked for
  std::uint64_t planned = 0;  // and about here the scan ends, or behind the leaf
  wire::Lid lid = 0;          // of the node that is asked
  LeafGuess::Guess guess;
  std::uint64_t remaining = 0;  // items that a scan may still deliver
  std::uint64_t items = 0;      // that it has delivered
  wire::ValueRef value{};       // of a write: what was stored out of line for it; 0: nothing
  std::string_view stored{};    // of a get whose value is out of line: where it lies
  std::uint64_t version = 0;    // and the item's version
};

/// Requests that take the stages together.
struct Group {
  std::vector<GroupSlot> slots;
  std::size_t count = 0;  // in use
  bool hinted = false;    // one of these has a hint
  std::uint32_t tick = 0;
  [[nodiscard]] std::span<GroupSlot> in_use() { return {slots.data(), count}; }
};

}  // namespace espalier::tree
