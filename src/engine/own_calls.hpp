// SPDX-License-Identifier: Apache-2.0
// The calls that every session can make to its node, whatever kinds it has: one group for each
// file.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> session_offloads();
std::span<const Offload> object_offloads();
std::span<const Offload> transaction_offloads();
std::span<const Offload> node_offloads();

/// The table of numbered clients, for checkpoints; its records belong to no kind.
extern const KindRedo kNumberedClientsRedo;

}  // namespace espalier::offload
