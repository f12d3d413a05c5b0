// SPDX-License-Identifier: Apache-2.0
// Tables as objects of their store's catalogue (catalog/catalog.hpp), which opens, finds and drops
// them; here they are made.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/catalog.hpp"
#include "table/table.hpp"

namespace espalier::table {

/// Makes an empty table with a name. The pool must outlive it.
/// Errors: those of Catalog::create, out_of_memory.
Result<std::shared_ptr<Table>> create_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                            std::string_view name, Schema schema,
                                            TableOptions options = {});

}  // namespace espalier::table
