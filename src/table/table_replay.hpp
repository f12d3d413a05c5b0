// SPDX-License-Identifier: Apache-2.0
// Applying records to a table (table/redo_record.hpp), so that it becomes what the one was that
// made them: the same rows under the same numbers, of an encrypted table in the same slots, and no
// slot is given that was given before. A reservation that was not filled is dead, as is one whose
// session ends.
//
// Records are applied in their order; rows that are there already are left as they are.
//
// Thread: one at a time for each table.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "table/table.hpp"

namespace espalier::table {

/// Applies a record, of any bytes. Cost: a copy of its rows.
/// Errors: corrupt (detail: a catalog::RedoFault), dropped, out_of_memory; nothing was done.
/// Requires: the record lies aligned to 8; the table makes no records; nobody else writes it.
Result<void> apply_redo(Table& table, std::string_view record);

}  // namespace espalier::table
