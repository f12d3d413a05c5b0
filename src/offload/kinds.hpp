// SPDX-License-Identifier: Apache-2.0
// The calls of the kinds that a node has, one group for each file.
#pragma once

#include <span>

#include "offload/registry.hpp"

namespace espalier::offload {

std::span<const Offload> point_offloads();
std::span<const Offload> range_offloads();
std::span<const Offload> modify_offloads();
std::span<const Offload> batch_offloads();
std::span<const Offload> object_offloads();
std::span<const Offload> map_offloads();
std::span<const Offload> shard_offloads();
std::span<const Offload> counter_offloads();
std::span<const Offload> session_offloads();
std::span<const Offload> node_offloads();
std::span<const Offload> one_sided_offloads();
std::span<const Offload> table_offloads();
std::span<const Offload> query_offloads();
std::span<const Offload> table_read_offloads();
std::span<const Offload> pipeline_offloads();
std::span<const Offload> landing_offloads();
std::span<const Offload> result_offloads();
std::span<const Offload> sequencer_offloads();

}  // namespace espalier::offload
