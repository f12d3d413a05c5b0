// SPDX-License-Identifier: Apache-2.0
// What a session asks of its node, whatever kinds this has: one group for each file.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> session_offloads();
std::span<const Offload> object_offloads();
std::span<const Offload> transaction_offloads();
std::span<const Offload> node_offloads();

/// Clients whose transactions have numbers, for checkpoints; their records are no kind's.
extern const KindRedo kNumberedClientsRedo;

}  // namespace espalier::offload
