// SPDX-License-Identifier: Apache-2.0
// Estimates of range sizes, from two descents.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// Estimates how many items lie in [low, high); empty bounds are none. Cost: two descents.
/// Requires: no other use of the worker's epoch meanwhile.
/// Errors: key_too_long (detail: the longest).
Result<std::uint64_t> estimate_range(ThreadContext& context, const MapCore& map,
                                     std::string_view low, std::string_view high);

}  // namespace espalier::tree
