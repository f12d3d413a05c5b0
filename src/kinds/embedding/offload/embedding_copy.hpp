// SPDX-License-Identifier: Apache-2.0
// Copies an embedding table as redo records: appends of as many rows as fit a piece.
#pragma once

#include <memory>

#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::catalog {
struct Entry;
}

namespace espalier::offload {

/// KindRedo::copy of embedding tables.
Result<std::unique_ptr<ObjectCopy>> copy_an_embedding_table(
    Services& services, const std::shared_ptr<const catalog::Entry>& entry);

}  // namespace espalier::offload
