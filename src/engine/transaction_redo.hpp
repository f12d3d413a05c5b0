// SPDX-License-Identifier: Apache-2.0
// Redo of a transaction from its record: the writes of all its objects get one version again, and
// the same one unless later records were applied before.
#pragma once

#include <span>
#include <string_view>

#include "engine/redo_target.hpp"
#include "engine/registry.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

/// Applies a record of RedoType::transaction, of any bytes. Skips parts of dropped objects. If the
/// objects no longer share a clock (a store that starts without a shared one), or their keys cannot
/// be locked together, each part is applied by itself. Errors: as RedoTarget::apply();
/// std::bad_alloc. Requires: as there.
Result<void> apply_transaction(RedoTarget& target, std::span<const Kind> own,
                               std::string_view record);

}  // namespace espalier::offload
