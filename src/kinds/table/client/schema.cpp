// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/schema.hpp"

#include <string>

#include "kinds/table/client/tables.hpp"

namespace espalier::client {

static_assert(static_cast<int>(ColumnKind::i64) == static_cast<int>(wire::ColumnType::i64));
static_assert(static_cast<int>(ColumnKind::decimal) == static_cast<int>(wire::ColumnType::decimal));
static_assert(static_cast<int>(ColumnKind::boolean) == static_cast<int>(wire::ColumnType::boolean));
static_assert(static_cast<int>(ColumnKind::text) == static_cast<int>(wire::ColumnType::text));

table::Type type_of(const ColumnType& type) {
  return {static_cast<wire::ColumnType>(type.kind), type.precision, type.scale, type.length};
}

ColumnType type_of(const table::Type& type) {
  return {static_cast<ColumnKind>(type.kind), type.precision, type.scale, type.length};
}

SchemaImpl::SchemaImpl(table::Schema schema_in) : schema(std::move(schema_in)) {
  for (const table::Column& column : schema.columns()) {
    columns.push_back({column.name, type_of(column.type), column.nullable});
  }
}

}  // namespace espalier::client

namespace espalier {

using client::refuse_table;
using client::SchemaImpl;

std::string ColumnType::to_text() const {
  const table::Type type = client::type_of(*this);
  return table::is_valid(type) ? table::to_text(type) : "no type";
}

TableResult<Schema> Schema::parse(std::string_view text) {
  auto parsed = table::Schema::parse(text);
  if (parsed) return SchemaImpl::handle(*std::move(parsed));
  const std::size_t place = parsed.error().position + 1;
  return refuse_table(
      {Code::invalid_argument, 0, static_cast<std::uint32_t>(place)},
      "the schema is wrong at " + std::to_string(place) + ": " + parsed.error().reason);
}

TableResult<Schema> Schema::make(std::span<const Column> columns) {
  std::vector<table::ColumnSpec> specs;
  for (const Column& column : columns) {
    specs.push_back({column.name, client::type_of(column.type), column.nullable});
  }
  auto made = table::Schema::make(specs);
  if (made) return SchemaImpl::handle(*std::move(made));
  const std::size_t number = made.error().position;
  std::string words = "the schema is wrong";
  if (number < columns.size()) words += ", column " + table::quoted_name(columns[number].name);
  return refuse_table({Code::invalid_argument, 0, static_cast<std::uint32_t>(number)},
                      words + ": " + made.error().reason);
}

const std::vector<Column>& Schema::columns() const { return impl_->columns; }

std::optional<std::size_t> Schema::find(std::string_view name) const {
  return impl_->schema.find(name);
}

std::uint32_t Schema::row_bytes() const { return impl_->schema.row_bytes(); }

std::string Schema::to_text() const { return impl_->schema.to_text(); }

bool operator==(const Schema& a, const Schema& b) {
  return a.impl_ == b.impl_ || a.impl_->schema == b.impl_->schema;
}

}  // namespace espalier
