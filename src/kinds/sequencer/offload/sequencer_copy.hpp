// SPDX-License-Identifier: Apache-2.0
// Copies a sequencer into a checkpoint record of its state; counters into one record each.
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
/// KindRedo::copy_others: copies counters in batches, because each take() waits meanwhile.
std::unique_ptr<ObjectCopy> copy_counters(Services& services);
/// KindRedo::others_after_loss: counters continue above all numbers that lost records may have
/// issued.
Result<void> counters_after_loss(Services& services);

}  // namespace espalier::offload
