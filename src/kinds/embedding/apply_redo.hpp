// SPDX-License-Identifier: Apache-2.0
// Applies redo records (kinds/embedding/redo_record.hpp) to an embedding table, so that it has the
// same rows, under the same numbers, as the table that logged them.
//
// Records are applied in order. Rows of an append that are there already are left as they are: a
// later replacement may have changed them, and its record is applied again.
//
// Thread: one at a time for each table.
#pragma once

#include <string_view>

#include "espalier/error.hpp"
#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding {

/// Applies one record of arbitrary bytes; a dropped table ignores it. Cost: a copy of its rows.
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory; nothing was done.
/// Requires: the table makes no records; no other thread writes it.
Result<void> apply_redo(EmbeddingTable& table, std::string_view record);

}  // namespace espalier::embedding
