// SPDX-License-Identifier: Apache-2.0
// The tables of a store.
#include <utility>

#include "channel/public_call.hpp"
#include "client/store_impl.hpp"
#include "espalier/table.hpp"
#include "kinds/table/client/schema.hpp"
#include "kinds/table/client/table_key.hpp"
#include "kinds/table/client/tables.hpp"

namespace espalier {
namespace {

TableDescription table_description(client::TableInfo info) {
  return {std::move(info.name),    client::SchemaImpl::handle(std::move(info.schema)),
          info.facts.rows,         info.facts.pages,
          info.facts.memory_bytes, info.salt.has_value(),
          info.durability};
}

TableResult<Table> handle_of(TableResult<std::shared_ptr<client::TableImpl>> made,
                             const TableOptions& options) {
  if (!made) return std::unexpected(std::move(made.error()));
  if (auto used = (*made)->use(options); !used) return std::unexpected(std::move(used.error()));
  return client::TableImpl::handle(*std::move(made));
}

}  // namespace

TableResult<Table> Store::create_table(std::string_view name, const Schema& schema) {
  return create_table(name, schema, {});
}

TableResult<Table> Store::create_table(std::string_view name, const Schema& schema,
                                       const TableOptions& options) {
  if (options.key && !options.encrypted) {
    return client::refuse_table({Code::invalid_argument, 0, 0},
                                "a key for a table whose rows are not to be encrypted");
  }
  if (options.key && client::TableKeyImpl::is_copy(*options.key)) return fail(Code::forked);
  return handle_of(client::call(*impl_,
                                [&] {
                                  return impl_->tables()->create(
                                      name, client::SchemaImpl::of(schema).schema,
                                      {options.encrypted, options.durability});
                                }),
                   options);
}

TableResult<Table> Store::open_table(std::string_view name) const { return open_table(name, {}); }

TableResult<Table> Store::open_table(std::string_view name, const TableOptions& options) const {
  return handle_of(client::call(*impl_, [&] { return impl_->tables()->open(name); }), options);
}

TableResult<void> Store::drop_table(std::string_view name) {
  return client::call(*impl_, [&] { return impl_->tables()->drop(name); });
}

TableResult<std::vector<TableDescription>> Store::tables() const {
  auto listed = client::call(*impl_, [&] { return impl_->tables()->list(); });
  if (!listed) return std::unexpected(std::move(listed.error()));
  std::vector<TableDescription> tables;
  for (client::TableInfo& info : *listed) tables.push_back(table_description(std::move(info)));
  return tables;
}

}  // namespace espalier
