// SPDX-License-Identifier: Apache-2.0
// The calls of hash maps, as a node carries them out.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> hash_offloads();

extern const KindRedo kHashRedo;

}  // namespace espalier::offload
