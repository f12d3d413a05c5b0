// SPDX-License-Identifier: Apache-2.0
// A sequencer as a record of what it is; counters as one of each.
#pragma once

#include <memory>

#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::catalog {
struct Entry;
}

namespace espalier::offload {

/// KindRedo::copy of sequencers.
Result<std::unique_ptr<ObjectCopy>> copy_a_sequencer(
    Services& services, const std::shared_ptr<const catalog::Entry>& entry);
/// KindRedo::copy_others: counters, some at a time, for each that is taken waits meanwhile.
std::unique_ptr<ObjectCopy> copy_counters(Services& services);
/// KindRedo::others_after_loss: counters go on above what lost records may have had them give.
Result<void> counters_after_loss(Services& services);

}  // namespace espalier::offload
