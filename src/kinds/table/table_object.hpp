// SPDX-License-Identifier: Apache-2.0
// Creates tables as objects of their store's catalogue (catalog/catalog.hpp), which opens, finds
// and drops them.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "kinds/table/table.hpp"

namespace espalier::table {

/// Creates an empty table with a name. The pool must outlive it.
/// Errors: those of Catalog::create, unsupported (an encrypted one with `none` in a durable store;
/// those of agreed_durability()), out_of_memory, system (no random salt).
Result<std::shared_ptr<Table>> create_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                            std::string_view name, Schema schema,
                                            TableOptions options = {});
/// Recreates a table from a record; null: nothing to create (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<Table>> restore_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                             const catalog::CreatedObject& created);

}  // namespace espalier::table
