// SPDX-License-Identifier: Apache-2.0
// Giving back the memory of objects that were dropped, on a helper and in steps: it takes time by
// the size of the object, and queries of others wait for the same helper.
#pragma once

#include <memory>

#include "engine/helper_job.hpp"

namespace espalier::store {
class DroppedObjects;
}

namespace espalier::offload {

struct Services;

/// A step: frees until its time is over (again), or nothing is left that may be freed (done).
[[nodiscard]] JobStep free_dropped(store::DroppedObjects& dropped, const StepContext& context);

/// Has a helper let go of what is kept, and free then. Nothing, if nothing is kept and a helper
/// frees already. Thread: any.
void begin_to_free(Services& services, std::shared_ptr<const void> kept = nullptr);

}  // namespace espalier::offload
