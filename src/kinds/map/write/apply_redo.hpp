// SPDX-License-Identifier: Apache-2.0
// Applying records to a map (kinds/map/redo_record.hpp), so that it becomes what the one was that
// made them.
//
// What is kept: all items, exactly; and versions as bounds. An item has the version of the last
// record that wrote it or a later one, and the clock is at or above the version of every record, so
// a version that a client was told never comes again for something else. Records of one key are
// applied in their order; then it does not matter whether some of them were applied before.
//
// Records of one write take the way of such a write, and need the memory that it needed: the
// records of a store that was filled can be applied to one of the same size.
//
// Thread: that of the context; one at a time for each map.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/error.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

struct ThreadContext;

/// A record of one write. Points into it.
struct SingleRedo {
  std::uint64_t version = 0;  // 0 where the map keeps none
  std::string_view key;
  std::string_view value;
  bool erase = false;
};

/// Reads a record, of any bytes, that the map takes and that writes one key; nothing: it is one, of
/// something else. Errors: corrupt (detail: a catalog::RedoFault).
Result<std::optional<SingleRedo>> read_single_redo(const MapCore& map, std::string_view record);

/// Applies a record, of any bytes; to a map that was dropped none. Cost: as its write, or a batch
/// of its writes; waits for the end of a hold of releases where versions before it are missing.
/// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed; out_of_memory, and no
/// item was.
/// Requires: the map makes no records; no other thread writes it; as apply_batch.
Result<void> apply_redo(ThreadContext& context, MapCore& map, std::string_view record);

}  // namespace espalier::tree
