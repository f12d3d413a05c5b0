// SPDX-License-Identifier: Apache-2.0
// Copies a map as records: a put of each item, then a version that the clock must exceed.
#pragma once

#include <memory>

#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::catalog {
struct Entry;
}

namespace espalier::offload {

/// KindRedo::copy of maps. Errors: unsupported (the map keeps no versions), too_many_participants.
Result<std::unique_ptr<ObjectCopy>> copy_a_map(Services& services,
                                               const std::shared_ptr<const catalog::Entry>& entry);

}  // namespace espalier::offload
