// SPDX-License-Identifier: Apache-2.0
// The calls of regions.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> region_offloads();

extern const KindRedo kRegionRedo;

}  // namespace espalier::offload
