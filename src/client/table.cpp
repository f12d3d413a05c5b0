// SPDX-License-Identifier: Apache-2.0
#include "espalier/table.hpp"

#include <utility>

#include "client/public_call.hpp"
#include "client/row_writer.hpp"
#include "client/schema.hpp"
#include "client/tables.hpp"
#include "espalier/query.hpp"

namespace espalier {
namespace {

using client::call;

TableDescription description_of(client::TableInfo info) {
  return {std::move(info.name),    client::SchemaImpl::handle(std::move(info.schema)),
          info.facts.rows,         info.facts.pages,
          info.facts.memory_bytes, info.salt.has_value()};
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
  return handle_of(call(*impl_,
                        [&] {
                          return impl_->tables()->create(
                              name, client::SchemaImpl::of(schema).schema, options.encrypted);
                        }),
                   options);
}

TableResult<Table> Store::open_table(std::string_view name) const { return open_table(name, {}); }

TableResult<Table> Store::open_table(std::string_view name, const TableOptions& options) const {
  return handle_of(call(*impl_, [&] { return impl_->tables()->open(name); }), options);
}

TableResult<void> Store::drop_table(std::string_view name) {
  return call(*impl_, [&] { return impl_->tables()->drop(name); });
}

TableResult<std::vector<TableDescription>> Store::tables() const {
  auto listed = call(*impl_, [&] { return impl_->tables()->list(); });
  if (!listed) return std::unexpected(std::move(listed.error()));
  std::vector<TableDescription> tables;
  for (client::TableInfo& info : *listed) tables.push_back(description_of(std::move(info)));
  return tables;
}

const std::string& Table::name() const { return impl_->name(); }

const Schema& Table::schema() const { return impl_->public_schema(); }

TableResult<TableDescription> Table::describe() const {
  const auto facts = call(*impl_, [&] { return impl_->facts(); });
  if (!facts) return std::unexpected(facts.error());
  return TableDescription{
      name(), schema(), facts->rows, facts->pages, facts->memory_bytes, impl_->salt().has_value()};
}

TableResult<std::uint64_t> Table::rows() const {
  const auto facts = call(*impl_, [&] { return impl_->facts(); });
  if (!facts) return std::unexpected(facts.error());
  return facts->rows;
}

RowWriter Table::writer() const {
  return RowWriter(std::make_unique<client::RowWriterImpl>(impl_));
}

Query Table::query() const { return Query(impl_); }

RowWriter::RowWriter(std::unique_ptr<client::RowWriterImpl> impl) : impl_(std::move(impl)) {}
RowWriter::RowWriter(RowWriter&&) noexcept = default;
RowWriter& RowWriter::operator=(RowWriter&&) noexcept = default;
RowWriter::~RowWriter() = default;

TableResult<void> RowWriter::add_row(std::span<const Value> values) { return impl_->add(values); }

std::size_t RowWriter::size() const { return impl_->size(); }

std::size_t RowWriter::rows_max() const { return impl_->rows_max(); }

TableResult<std::uint64_t> RowWriter::commit() {
  return call(impl_->table(), [&] { return impl_->commit(); });
}

void RowWriter::clear() { impl_->clear(); }

void RowWriter::leave_out_refused() { impl_->leave_out_refused(); }

}  // namespace espalier
