// SPDX-License-Identifier: Apache-2.0
// What the calls of embedding tables do, for nodes and for stores of this process alike
// (channel/reached.hpp). A reduction takes many steps at a node, and is each side's own
// (reducer.hpp).
//
// Thread: any.
#pragma once

#include <memory>

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

}  // namespace espalier::embedding_calls
