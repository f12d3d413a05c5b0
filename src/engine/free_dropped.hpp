// SPDX-License-Identifier: Apache-2.0
// Frees the memory of dropped objects on a helper, in steps: the time grows with the object's size,
// and other clients' queries share the helper.
#pragma once

#include <memory>

#include "engine/helper_job.hpp"

namespace espalier::store {
class DroppedObjects;
}

namespace espalier::offload {

struct Services;

/// One step: frees until its time is over (again), or nothing is left that may be freed (done).
[[nodiscard]] JobStep free_dropped(store::DroppedObjects& dropped, const StepContext& context);

/// Starts a helper job that releases `kept`, then frees. Does nothing if `kept` is null and a job
/// is running already. Thread: any.
void begin_to_free(Services& services, std::shared_ptr<const void> kept = nullptr);

}  // namespace espalier::offload
