// SPDX-License-Identifier: Apache-2.0
// Bulk append: adds items behind all others of a map, as a checkpoint delivers them. Builds whole
// leaves, full but for the last one, as single writes of ascending keys would leave them.
//
// Thread: that of the worker.
#pragma once

#include <span>

#include "espalier/error.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

struct ThreadContext;

/// Writes all items under one version; false: some are not behind the map's last key, and nothing
/// was written. Cost: the items' bytes, half a leaf more, and the map's structure lock.
/// Errors: out_of_memory, with nothing written. Requires: the items ascend, at least one; values
/// are inline; the map has no sink for records; the worker exposes no epoch.
Result<bool> append_items(ThreadContext& context, MapCore& map,
                          std::span<const Record> items) noexcept;

}  // namespace espalier::tree
