// SPDX-License-Identifier: Apache-2.0
// Reductions of bags of one table, and of several.
#pragma once

#include "engine/call.hpp"
#include "kinds/embedding/calls.hpp"

namespace espalier::offload {

Next reduce_bags(Call& call, const embedding_calls::Reduce& asked);
Next reduce_bags_of_tables(Call& call, const embedding_calls::ReduceTables& asked);

}  // namespace espalier::offload
