// SPDX-License-Identifier: Apache-2.0
// Merging the log of a leaf, and the write that found it full, into a new sorted block
// [Honeycomb §3.5].
//
// A log changes few of a leaf's items, so nothing here looks at each of them: the old sorted block
// is copied in runs between what the log changes, and where an item begins in each chunk is taken
// over for all chunks before the first item that moves. A log that only replaces values of
// unchanged lengths moves nothing.
//
// What splits, merges or shares leaves gathers all items instead: see leaf_builder.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kinds/map/node/leaf_builder.hpp"

namespace espalier::tree {

struct NewestState;
struct WriteIntent;

class LogMerge {
 public:
  /// Plans the merge. `state`: of the intent's key, whose write takes effect. The leaf, the intent
  /// and what they point to must stay.
  /// Requires: the leaf is locked, or cannot change.
  /// Cost: a line or two for each entry of the log.
  LogMerge(const NodeView& leaf, const WriteIntent& intent, const NewestState& state);

  /// Bytes of the new sorted block.
  [[nodiscard]] std::uint32_t bytes() const { return end_ - leaf_.geometry().sorted_begin; }

  /// Lays out the new leaf, with an empty log, in `buffer`. It is no node yet: see go_live.
  /// Requires: bytes() fit leaf_room; the frame has the old leaf's fences.
  void build(std::byte* buffer, const NodeFrame& frame) const;

 private:
  // At `at` of the old sorted block `removed` bytes go, and `placed` bytes come in their place.
  struct Edit {
    std::uint32_t at = 0;
    std::uint32_t removed = 0;
    std::uint32_t placed = 0;  // 0: nothing comes
    Record record;
  };
  void add(std::uint32_t at, bool replaces, const Record* record);
  [[nodiscard]] std::span<const Edit> edits() const { return {edits_, used_}; }
  [[nodiscard]] std::uint32_t first_moved() const;
  void copy_items(std::byte* buffer) const;
  [[nodiscard]] KeyPrefixMap index_chunks(std::byte* buffer) const;

  NodeView leaf_;
  std::uint32_t old_end_;
  std::uint32_t end_;    // of the new sorted block
  std::uint32_t items_;  // in it
  std::uint32_t used_ = 0;
  Edit edits_[wire::kLogSlotsMax + 1];
};

}  // namespace espalier::tree
