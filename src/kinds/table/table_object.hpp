// SPDX-License-Identifier: Apache-2.0
// Tables as objects of their store's catalogue (catalog/catalog.hpp), which opens, finds and drops
// them; here they are made.
#pragma once

#include <memory>
#include <string_view>

#include "catalog/catalog.hpp"
#include "catalog/object_redo.hpp"
#include "kinds/table/table.hpp"

namespace espalier::table {

/// Makes an empty table with a name. The pool must outlive it.
/// Errors: those of Catalog::create, unsupported (an encrypted one of `none`, where the store
/// is durable; those of agreed_durability()), out_of_memory, system (there is no salt to be had).
Result<std::shared_ptr<Table>> create_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                            std::string_view name, Schema schema,
                                            TableOptions options = {});
/// Makes a table again that a record tells of; null: there is nothing to make (Catalog::restore).
/// Errors: corrupt (detail: a catalog::RedoFault), out_of_memory.
Result<std::shared_ptr<Table>> restore_table(catalog::Catalog& catalog, memory::BufferPool& pool,
                                             const catalog::CreatedObject& created);

}  // namespace espalier::table
