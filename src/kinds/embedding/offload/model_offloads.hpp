// SPDX-License-Identifier: Apache-2.0
// A node's handlers of the calls of ranking models.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> model_offloads();

extern const KindRedo kModelRedo;

}  // namespace espalier::offload
