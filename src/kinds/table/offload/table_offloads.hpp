// SPDX-License-Identifier: Apache-2.0
// The calls of tables, one group for each file.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> table_offloads();
std::span<const Offload> query_offloads();
std::span<const Offload> table_read_offloads();
std::span<const Offload> pipeline_offloads();
std::span<const Offload> landing_offloads();
std::span<const Offload> result_offloads();

extern const KindRedo kTableRedo;

}  // namespace espalier::offload
