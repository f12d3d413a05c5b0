// SPDX-License-Identifier: Apache-2.0
// Copies a long value into a buffer of its own, ahead of the walk that writes it.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "kinds/map/format/node.hpp"
#include "memory/staged_bytes.hpp"

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// Allocates a buffer and copies the first bytes, which lie where nodes have their headers. `value`
/// must outlive the copying. Errors: out_of_memory.
Result<memory::StagedBytes> stage_value(ThreadContext& context, MapCore& map,
                                        std::string_view value);
/// The value, which the caller owns from now on. Requires: all of it was copied.
[[nodiscard]] wire::ValueRef take_staged(MapCore& map, memory::StagedBytes& staged);

}  // namespace espalier::tree
