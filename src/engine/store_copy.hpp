// SPDX-License-Identifier: Apache-2.0
// The objects of a store as records, while others write, make and drop them: what a checkpoint has
// (docs/design/checkpoints.md). Applied, and behind them the records of the store's sink from
// sequence() on, they make the store as it is when the last of these was handed over.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "engine/object_copy.hpp"
#include "engine/registry.hpp"
#include "engine/services.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

class StoreCopy {
 public:
  /// Begins now. `own`: kinds beside those of the registry. Both outlive it. Throws std::bad_alloc.
  /// Requires: the store has a sink.
  StoreCopy(Services& services, std::span<const Kind> own)
      : StoreCopy(services, own, services.catalog().redo()->handed_over() + 1) {}
  /// The same of a store whose effects are all of records before `sequence`: those that its sink
  /// was handed by then, or that were applied to it.
  StoreCopy(Services& services, std::span<const Kind> own, std::uint64_t sequence);

  /// Records from here on are to be applied behind the copy.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Adds records until the piece is full, or to wait for; empty ones may be followed by others.
  /// Errors: unsupported (objects that cannot be copied; detail: their ObjectKind), those of the
  /// kinds, out_of_memory.
  Result<CopyStep> next(CopyPiece& piece);

 private:
  void add_made(CopyPiece& piece);
  Result<CopyStep> go_on(CopyPiece& piece);
  /// Begins with the next object, or with the next kind's others; of an object that was dropped it
  /// says so instead. False: that was all.
  Result<bool> begin_next(CopyPiece& piece);
  /// Ends the copy of an object: what was dropped meanwhile is perhaps copied by half.
  void end_copy(CopyPiece& piece);

  Services& services_;
  const std::span<const Kind> own_;
  std::uint64_t sequence_;
  std::vector<catalog::EntryPointer> made_;      // whose records that they were made are to come
  std::uint32_t renames_ = 0;                    // 0: there is none, or it is said
  std::vector<catalog::DroppedObject> objects_;  // by their ids, whether they are dropped or not
  std::uint32_t given_ = 0;
  bool given_said_ = false;
  std::size_t next_made_ = 0;
  std::size_t next_object_ = 0;
  std::size_t next_kind_ = 0;
  std::unique_ptr<ObjectCopy> copy_;
  bool copies_object_ = false;  // the last one of objects_ that was begun
};

}  // namespace espalier::offload
