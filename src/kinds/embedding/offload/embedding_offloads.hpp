// SPDX-License-Identifier: Apache-2.0
// A node's handlers of the calls of embedding tables.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> embedding_offloads();

extern const KindRedo kEmbeddingRedo;

}  // namespace espalier::offload
