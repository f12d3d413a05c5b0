// SPDX-License-Identifier: Apache-2.0
// Items behind all that a map has, as they come from a checkpoint: whole leaves are built of them,
// full but for the last one, as single writes of ascending keys leave them.
//
// Thread: that of the worker.
#pragma once

#include <span>

#include "espalier/error.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/write/map_core.hpp"

namespace espalier::tree {

struct ThreadContext;

/// Writes all of them under one version; false: some do not lie behind what is there, and nothing
/// was written. Cost: what the items take, half a leaf more, and the map's structure lock.
/// Errors: out_of_memory, and nothing was written. Requires: they ascend, at least one; values are
/// inline; the map makes no records; the worker exposes no epoch.
Result<bool> append_items(ThreadContext& context, MapCore& map,
                          std::span<const Record> items) noexcept;

}  // namespace espalier::tree
