// SPDX-License-Identifier: Apache-2.0
// Copies the objects of a store into records for a checkpoint, while other threads write, create
// and drop them (docs/design/checkpoints.md). These records, and then the records of the store's
// sink from sequence() on, rebuild the store as of the last record applied.
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
  /// The same for a store whose effects all stem from records before `sequence`: those that its
  /// sink had by then, or that were applied to it.
  StoreCopy(Services& services, std::span<const Kind> own, std::uint64_t sequence);

  /// The first record to apply after the copy.
  [[nodiscard]] std::uint64_t sequence() const { return sequence_; }
  /// Adds records until the piece is full, or it must wait; an empty piece may be followed by more.
  /// Errors: unsupported (objects that cannot be copied; detail: their ObjectKind), those of the
  /// kinds, out_of_memory.
  Result<CopyStep> next(CopyPiece& piece);

 private:
  void add_made(CopyPiece& piece);
  Result<CopyStep> go_on(CopyPiece& piece);
  /// Begins the next object, or the next kind's other state; of a dropped object it records only
  /// that. False: there is none left.
  Result<bool> begin_next(CopyPiece& piece);
  /// Ends the copy of an object; records if it was dropped meanwhile, since its copy may be
  /// partial.
  void end_copy(CopyPiece& piece);

  Services& services_;
  const std::span<const Kind> own_;
  std::uint64_t sequence_;
  std::vector<catalog::EntryPointer> made_;      // whose creation is not recorded yet
  std::uint32_t renames_ = 0;                    // 0: none, or recorded already
  std::vector<catalog::DroppedObject> objects_;  // by id, dropped or not
  std::uint32_t given_ = 0;
  bool given_said_ = false;
  std::size_t next_made_ = 0;
  std::size_t next_object_ = 0;
  std::size_t next_kind_ = 0;
  std::unique_ptr<ObjectCopy> copy_;
  bool copies_object_ = false;  // the last one of objects_ that was begun
};

}  // namespace espalier::offload
