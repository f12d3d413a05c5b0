// SPDX-License-Identifier: Apache-2.0
// The calls of maps, grouped by file.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> point_offloads();
std::span<const Offload> range_offloads();
std::span<const Offload> modify_offloads();
std::span<const Offload> batch_offloads();
std::span<const Offload> map_offloads();
std::span<const Offload> shard_offloads();
std::span<const Offload> one_sided_offloads();

extern const KindRedo kMapRedo;

}  // namespace espalier::offload
