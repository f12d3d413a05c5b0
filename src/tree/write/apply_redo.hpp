// SPDX-License-Identifier: Apache-2.0
// Applying records to a map (tree/redo_record.hpp), so that it becomes what the one was that made
// them.
//
// What is kept: all items, exactly; and versions as bounds. An item has the version of the last
// record that wrote it or a later one, and the clock is at or above the version of every record, so
// a version that anybody was told never comes again for something else. Records of one key are
// applied in their order; then it does not matter whether some of them were applied before.
//
// Thread: that of the context; one at a time for each map.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::tree {

/// Applies a record, of any bytes. Cost: as a batch of its writes.
/// Errors: corrupt (detail: a catalog::RedoFault), and nothing was changed; out_of_memory.
/// Requires: the map makes no records; no other thread writes it; as apply_batch.
Result<void> apply_redo(ThreadContext& context, MapCore& map, std::string_view record);

}  // namespace espalier::tree
