// SPDX-License-Identifier: Apache-2.0
// The calls of sequencers, one group for each file.
#pragma once

#include <span>

#include "engine/registry.hpp"

namespace espalier::offload {

std::span<const Offload> sequencer_offloads();
std::span<const Offload> counter_offloads();

extern const KindRedo kSequencerRedo;

}  // namespace espalier::offload
