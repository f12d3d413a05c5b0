// SPDX-License-Identifier: Apache-2.0
// Ranking models in checkpoints (docs/design/checkpoints.md).
#pragma once

#include <memory>

#include "catalog/catalog.hpp"
#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::offload {

/// KindRedo::copy.
Result<std::unique_ptr<ObjectCopy>> copy_a_model(
    Services& services, const std::shared_ptr<const catalog::Entry>& entry);

}  // namespace espalier::offload
