// SPDX-License-Identifier: Apache-2.0
// A node's handlers of the calls of hash maps.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> hash_offloads();

extern const KindRedo kHashRedo;

}  // namespace espalier::offload
