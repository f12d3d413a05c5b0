// SPDX-License-Identifier: Apache-2.0
// Copies a table into checkpoint records: appends of as many rows as lie in a piece.
#pragma once

#include <memory>

#include "engine/object_copy.hpp"
#include "engine/services.hpp"

namespace espalier::catalog {
struct Entry;
}

namespace espalier::offload {

/// KindRedo::copy of tables. Errors: unsupported (the table is encrypted: slots that were reserved
/// and never filled are in no row).
Result<std::unique_ptr<ObjectCopy>> copy_a_table(
    Services& services, const std::shared_ptr<const catalog::Entry>& entry);

}  // namespace espalier::offload
