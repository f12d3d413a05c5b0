// SPDX-License-Identifier: Apache-2.0
// Replays redo records on a table (kinds/table/redo_record.hpp), which reproduces the original: the
// same rows under the same numbers, for an encrypted table in the same slots; no slot is issued
// that was issued before. An unfilled reservation is dead, as when its session ends.
//
// Records are applied in order; rows already present stay unchanged.
//
// Thread: one at a time for each table.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "kinds/table/table.hpp"

namespace espalier::table {

/// Applies a record of arbitrary bytes; a no-op on a dropped table. Cost: a copy of its rows.
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory; nothing was done.
/// Requires: the record is aligned to 8; the table makes no records; no other thread writes it.
Result<void> apply_redo(Table& table, std::string_view record);

}  // namespace espalier::table
