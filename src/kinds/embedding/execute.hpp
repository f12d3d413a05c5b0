// SPDX-License-Identifier: Apache-2.0
// What the calls of embedding tables do, for nodes and for stores of this process alike
// (channel/reached.hpp). A reduction takes many steps at a node, and is each side's own
// (reducer.hpp).
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

/// Numbers ids as the table's groups do; returns which grouping that is, 0 where there is none and
/// ids stay. Errors: not_found (it was dropped), invalid_argument (an id is no row's, or in part;
/// or its number is 2^31 or more, which renumbered ids have, and the table has groups).
TableResult<std::uint32_t> renumber(const embedding::EmbeddingTable& of,
                                    std::span<std::uint32_t> ids, bool whole = true);

}  // namespace espalier::embedding_calls
