// SPDX-License-Identifier: Apache-2.0
#include "espalier/table.hpp"

#include <utility>

#include "channel/public_call.hpp"
#include "espalier/query.hpp"
#include "kinds/table/client/row_writer.hpp"
#include "kinds/table/client/schema.hpp"
#include "kinds/table/client/tables.hpp"

namespace espalier {

using client::call;

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
