// SPDX-License-Identifier: Apache-2.0
// A piece of a walk over all items of a hash map, as a call: a helper gathers it, for a map of which
// most was erased may take long to the next item.
#pragma once

#include "engine/call.hpp"
#include "kinds/hash/calls.hpp"

namespace espalier::offload {

Next hash_walk(Call& call, const hash_calls::Walk& asked);

}  // namespace espalier::offload
