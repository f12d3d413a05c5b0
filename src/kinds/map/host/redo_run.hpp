// SPDX-License-Identifier: Apache-2.0
// Applies consecutive records of one map as apply_redo() does, with many in flight: prefetching the
// memory of one write overlaps with other writes, which with keys in random order dominates the
// cost of recovery.
//
// Two writes of one key are never in flight together, since they could be reordered.
//
// Keys that ascend behind all others, as from a checkpoint or a load in key order, are built into
// whole leaves instead (kinds/map/write/append_items.hpp).
//
// Thread: that of the context; one at a time for each map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "espalier/error.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

struct ThreadContext;

/// What a run leaves for the next of the same thread.
struct RedoRunState {
  /// So many of the next records are applied one by one: the store was full, and each attempt to
  /// have many in flight there costs all that have to be repeated.
  std::uint32_t one_by_one = 0;
};

/// Applies records, of any bytes, in their order. `applied`: how many of them, if one was refused:
/// that one is the next. Of those behind it some may be applied, too.
/// Errors and Requires: as apply_redo().
Result<void> apply_redo_run(ThreadContext& context, MapCore& map,
                            std::span<const std::string_view> records, std::size_t& applied,
                            RedoRunState& state);

}  // namespace espalier::tree
