// SPDX-License-Identifier: Apache-2.0
// A transaction out of its record: all of its objects' writes under one version again, which is the
// one that they had where nothing later was applied before.
#pragma once

#include <span>
#include <string_view>

#include "engine/redo_target.hpp"
#include "engine/registry.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

/// Applies a record of RedoType::transaction, of any bytes. Parts of objects that were dropped are
/// left out. Where its objects have no clock in common any more (a store that is started without a
/// shared one), and where their keys cannot be locked together, each part is applied by itself.
/// Errors: as RedoTarget::apply(); std::bad_alloc. Requires: as there.
Result<void> apply_transaction(RedoTarget& target, std::span<const Kind> own,
                               std::string_view record);

}  // namespace espalier::offload
