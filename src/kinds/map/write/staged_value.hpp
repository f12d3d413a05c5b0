// SPDX-License-Identifier: Apache-2.0
// A long value on its way into a buffer of its own, before the walk that writes it takes it.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "kinds/map/format/node.hpp"
#include "memory/staged_bytes.hpp"

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// Takes a buffer, and copies the first few bytes, as many as lie where nodes have their heads.
/// `value` outlives the copying. Errors: out_of_memory.
Result<memory::StagedBytes> stage_value(ThreadContext& context, MapCore& map,
                                        std::string_view value);
/// The value, of which the caller disposes from now on. Requires: all of it was copied.
[[nodiscard]] wire::ValueRef take_staged(MapCore& map, memory::StagedBytes& staged);

}  // namespace espalier::tree
