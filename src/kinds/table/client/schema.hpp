// SPDX-License-Identifier: Apache-2.0
// Implementation of Schema.
//
// Thread: values; safe to read from any.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "espalier/table.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::client {

class SchemaImpl {
 public:
  explicit SchemaImpl(table::Schema schema);
  static const SchemaImpl& of(const Schema& schema) { return *schema.impl_; }
  static Schema handle(table::Schema schema) {
    return Schema(std::make_shared<const SchemaImpl>(std::move(schema)));
  }

  const table::Schema schema;
  std::vector<Column> columns;
};

[[nodiscard]] table::Type type_of(const ColumnType& type);
[[nodiscard]] ColumnType type_of(const table::Type& type);

}  // namespace espalier::client
