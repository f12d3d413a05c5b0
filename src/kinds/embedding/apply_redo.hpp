// SPDX-License-Identifier: Apache-2.0
// Applying records to an embedding table (kinds/embedding/redo_record.hpp), so that it has the rows
// that the one had which made them, under the same numbers.
//
// Records are applied in their order; rows of an append that are there already are left as they
// are, for a later replacement may have changed them, and comes again.
//
// Thread: one at a time for each table.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding {

/// Applies a record, of any bytes; to a table that was dropped none. Cost: a copy of its rows.
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory; nothing was done.
/// Requires: the table makes no records; no other thread writes it.
Result<void> apply_redo(EmbeddingTable& table, std::string_view record);

}  // namespace espalier::embedding
