// SPDX-License-Identifier: Apache-2.0
// Copies a hash map as redo records.
#pragma once

#include <memory>

#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::catalog {
struct Entry;
}

namespace espalier::offload {

/// KindRedo::copy of hash maps. Errors: unsupported (the map keeps no versions).
Result<std::unique_ptr<ObjectCopy>> copy_a_hash_map(
    Services& services, const std::shared_ptr<const catalog::Entry>& entry);

}  // namespace espalier::offload
