// SPDX-License-Identifier: Apache-2.0
// Implements the calls of embedding tables, for nodes and for stores of this process alike
// (channel/reached.hpp). Reductions take many steps at a node, so node and client implement them
// separately (reducer.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "espalier/table_error.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding_calls {

// Requires of the catalogue: it is that of a store. Errors: those of create_embedding_table() and
// Catalog::open.
Result<std::shared_ptr<embedding::EmbeddingTable>> obtain(catalog::Catalog& catalog,
                                                          const Create& asked);
Result<std::shared_ptr<embedding::EmbeddingTable>> obtain(catalog::Catalog& catalog,
                                                          const Open& asked);

// Errors: not_found (it was dropped), and as of EmbeddingTable.
Result<Numbers> execute(embedding::EmbeddingTable& of, const Info& asked);
TableResult<Appended> execute(embedding::EmbeddingTable& of, const Append& asked);
TableResult<Replaced> execute(embedding::EmbeddingTable& of, const Replace& asked);

/// Renumbers ids by the table's groups; returns the number of the grouping, 0 if there is none and
/// ids stay. Errors: not_found (it was dropped), invalid_argument (an id is no row's, or in part;
/// or its number is 2^31 or more, as of renumbered ids, and the table has groups).
TableResult<std::uint32_t> renumber(const embedding::EmbeddingTable& of,
                                    std::span<std::uint32_t> ids, bool whole = true);

}  // namespace espalier::embedding_calls
