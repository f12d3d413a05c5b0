// SPDX-License-Identifier: Apache-2.0
// Merges a leaf's log, and the write that found it full, into a new sorted block [Honeycomb §3.5].
//
// A log changes few of a leaf's items, so the merge does not visit each item: it copies the old
// sorted block in runs between the changes, and reuses the starts of all chunks before the first
// item that moves. A log that only replaces values by others of the same length moves nothing.
//
// Splits, merges and redistributions of leaves gather all items instead: see leaf_builder.hpp.
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
  /// and what they point to outlive this.
  /// Requires: the leaf is locked, or cannot change.
  /// Cost: a cache line or two for each entry of the log.
  LogMerge(const NodeView& leaf, const WriteIntent& intent, const NewestState& state);

  /// Bytes of the new sorted block.
  [[nodiscard]] std::uint32_t bytes() const { return end_ - leaf_.geometry().sorted_begin; }

  /// Lays out the new leaf, with an empty log, in `buffer`. Walkers reject the buffer until
  /// go_live().
  /// Requires: bytes() fit leaf_room; the frame has the old leaf's fences.
  void build(std::byte* buffer, const NodeFrame& frame) const;

 private:
  // At `at` of the old sorted block `removed` bytes are replaced by `placed` bytes.
  struct Edit {
    std::uint32_t at = 0;
    std::uint32_t removed = 0;
    std::uint32_t placed = 0;  // 0: only removes
    Record record;
  };
  void add(std::uint32_t at, bool replaces, const Record* record);
  [[nodiscard]] std::span<const Edit> edits() const { return {edits_, used_}; }
  [[nodiscard]] std::uint32_t first_moved() const;
  void copy_items(std::byte* buffer) const;
  [[nodiscard]] KeyPrefixMap index_chunks(std::byte* buffer) const;

  NodeView leaf_;
  std::uint32_t old_end_;
  std::uint32_t end_;    // end of the new sorted block
  std::uint32_t items_;  // items in it
  std::uint32_t used_ = 0;
  Edit edits_[wire::kLogSlotsMax + 1];
};

}  // namespace espalier::tree
