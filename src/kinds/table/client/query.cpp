// SPDX-License-Identifier: Apache-2.0
#include "espalier/query.hpp"

#include <algorithm>
#include <utility>

#include "channel/public_call.hpp"
#include "kinds/table/client/prepared.hpp"
#include "kinds/table/client/query_writer.hpp"
#include "kinds/table/client/row_stream.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/explain.hpp"

namespace espalier {
namespace {

template <class Options>
client::RunLimits limits_of(const Options& options, bool within_call) {
  client::RunLimits limits;
  if (options.deadline) {
    const auto since =
        std::chrono::duration_cast<std::chrono::nanoseconds>(options.deadline->time_since_epoch());
    limits.deadline_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0));
  }
  limits.stop = options.stop;
  limits.within_call = within_call;
  return limits;
}

TableResult<std::unique_ptr<client::RowStreamImpl>> begin(client::TableImpl& table,
                                                          client::QueryParts parts,
                                                          const QueryOptions& options,
                                                          bool within_call) {
  if (table.is_copy()) return fail(Code::forked);
  client::RunLimits limits = limits_of(options, within_call);
  const TableKey* const result_key = options.result_key ? &*options.result_key : nullptr;
  const auto keys = table.keys_of_run(result_key);
  if (!keys) return std::unexpected(keys.error());
  limits.keys = *keys;
  parts.decrypt = keys->table != nullptr;
  parts.encrypt = keys->result != nullptr;
  auto written = client::write_query(parts, table.schema());
  if (!written) return std::unexpected(std::move(written.error()));
  auto query = std::make_shared<const client::WrittenQuery>(*std::move(written));
  auto run = table.begin(query->message, query->pipeline.result.row_bytes(), limits);
  if (!run) return std::unexpected(std::move(run.error()));
  return std::make_unique<client::RowStreamImpl>(std::move(query), *std::move(run));
}

/// In place of engines that applications do not link: what is only explained is not searched.
class NoSearch final : public table::RegexCompiler, public table::Regex {
 public:
  std::expected<std::shared_ptr<const table::Regex>, std::string> compile(
      std::string_view, table::RegexOptions) override {
    return std::make_shared<NoSearch>();
  }
  void search(std::span<const std::string_view>, std::size_t, std::uint8_t*) const override {
    std::unreachable();
  }
};

}  // namespace

Query& Query::where(Expr condition) {
  conditions_.push_back(std::move(condition));
  return *this;
}

Query& Query::project(std::vector<Output> columns) {
  projected_ = true;
  outputs_ = std::move(columns);
  return *this;
}

Query& Query::distinct() {
  distinct_ = true;
  return *this;
}

Query& Query::group_by(std::vector<Output> keys, std::vector<Aggregate> aggregates) {
  grouped_ = true;
  outputs_ = std::move(keys);
  aggregates_ = std::move(aggregates);
  return *this;
}

Query& Query::limit(std::uint64_t rows) {
  limit_ = rows;
  return *this;
}

client::QueryParts Query::parts() const {
  return {.conditions = conditions_,
          .outputs = outputs_,
          .aggregates = aggregates_,
          .projected = projected_,
          .grouped = grouped_,
          .distinct = distinct_,
          .limit = limit_};
}

TableResult<Rows> Query::run(const QueryOptions& options) const {
  const auto stream = begin(*table_, parts(), options, true);
  if (!stream) return std::unexpected(stream.error());
  return (*stream)->all();
}

TableResult<RowStream> Query::stream(const QueryOptions& options) const {
  auto stream = begin(*table_, parts(), options, false);
  if (!stream) return std::unexpected(std::move(stream.error()));
  return RowStream(*std::move(stream));
}

TableResult<PreparedQuery> Query::prepare(ResultForm form) const {
  client::QueryParts parts = this->parts();
  parts.decrypt = table_->salt().has_value();
  parts.encrypt = form == ResultForm::encrypted;
  return client::call(*table_, [&] { return client::PreparedImpl::prepare(table_, parts); });
}

TableResult<Rows> PreparedQuery::run(std::span<const Argument> arguments,
                                     const QueryOptions& options) const {
  const auto stream = impl_->begin(arguments, options.result_key ? &*options.result_key : nullptr,
                                   limits_of(options, true));
  if (!stream) return std::unexpected(stream.error());
  return (*stream)->all();
}

TableResult<RowStream> PreparedQuery::stream(std::span<const Argument> arguments,
                                             const QueryOptions& options) const {
  auto stream = impl_->begin(arguments, options.result_key ? &*options.result_key : nullptr,
                             limits_of(options, false));
  if (!stream) return std::unexpected(std::move(stream.error()));
  return RowStream(*std::move(stream));
}

const std::vector<AnswerColumn>& PreparedQuery::columns() const { return impl_->query().columns; }

TableResult<std::vector<std::string>> Query::explain() const {
  client::QueryParts parts = this->parts();
  parts.decrypt = table_->salt().has_value();
  auto written = client::write_query(parts, table_->schema());
  if (!written) return std::unexpected(std::move(written.error()));
  NoSearch regexes;
  if (const auto compiled = compile_regexes(written->pipeline, regexes); !compiled) {
    return client::refuse_table({Code::invalid_argument, 0, 0}, compiled.error().message());
  }
  return table::explain(table::BatchProgram(std::move(written->pipeline)));
}

TableResult<RowStream> Table::read_rows() const { return read_rows({}); }

TableResult<RowStream> Table::read_rows(const ReadOptions& options) const {
  auto written = client::write_query({}, impl_->schema());
  if (!written) return std::unexpected(std::move(written.error()));
  auto run = client::call(*impl_, [&] {
    return impl_->read({options.first_row, options.rows}, limits_of(options, false));
  });
  if (!run) return std::unexpected(std::move(run.error()));
  return RowStream(std::make_unique<client::RowStreamImpl>(
      std::make_shared<const client::WrittenQuery>(*std::move(written)), *std::move(run)));
}

RowStream::RowStream(std::unique_ptr<client::RowStreamImpl> impl) : impl_(std::move(impl)) {}
RowStream::RowStream(RowStream&&) noexcept = default;
RowStream& RowStream::operator=(RowStream&&) noexcept = default;
RowStream::~RowStream() = default;

const std::vector<AnswerColumn>& RowStream::columns() const { return impl_->query().columns; }

TableResult<std::optional<Rows>> RowStream::next() { return impl_->next(); }

void RowStream::cancel() { impl_->cancel(); }

QueryStats RowStream::stats() const {
  const wire::QueryNumbers numbers = impl_->numbers();
  return {numbers.rows_read,  numbers.rows_passed, numbers.rows_sent, numbers.bytes_read,
          numbers.bytes_sent, numbers.flushes,     numbers.busy_ns,   numbers.memory_bytes};
}

}  // namespace espalier
