// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/prepared.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kinds/table/client/expression.hpp"
#include "kinds/table/client/query_writer.hpp"
#include "kinds/table/client/row_stream.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/pipeline_builder.hpp"

namespace espalier::client {
namespace {

std::unexpected<TableError> refuse_query(std::string words) {
  return refuse_table({Code::invalid_argument, 0, 0}, std::move(words));
}

std::unexpected<TableError> refuse_argument(const Argument& argument, const std::string& words) {
  return refuse_query("parameter " + std::string(argument.name) + ": " + words);
}

/// A number at another scale, if that loses nothing.
bool rescale(table::Constant& constant, std::uint8_t scale) {
  Decimal number{constant.number, constant.type.scale};
  for (; number.scale < scale; ++number.scale) number.unscaled *= 10;
  for (; number.scale > scale; --number.scale) {
    if (number.unscaled % 10 != 0) return false;
    number.unscaled /= 10;
  }
  const Int128 limit = table::power_of_ten(wire::kDecimalDigitsMax);
  if (number.unscaled <= -limit || number.unscaled >= limit) return false;
  constant = table::decimal_constant(static_cast<std::int64_t>(number.unscaled), scale);
  return true;
}

/// An argument as a constant of the type that the pipeline was written with.
TableResult<table::Constant> constant_for(const Argument& argument,
                                          const wire::ConstantValue& was) {
  std::string problem;
  if (argument.value.is_null()) return refuse_argument(argument, "null is no value for it");
  table::Constant constant = constant_of(argument.value, problem);
  if (!problem.empty()) return refuse_argument(argument, problem);
  const auto kind = static_cast<wire::ValueKind>(was.kind);
  const bool whole = constant.type.kind == wire::ValueKind::integer;
  if (kind == wire::ValueKind::decimal &&
      (whole || constant.type.kind == wire::ValueKind::decimal)) {
    if (rescale(constant, was.scale)) return constant;
    return refuse_argument(argument, argument.value.to_text() + " has not at most 18 digits, " +
                                         std::to_string(was.scale) + " of them behind the point");
  }
  if (constant.type.kind == kind) return constant;
  return refuse_argument(argument,
                         argument.value.to_text() + " is no " + std::string(table::name_of(kind)));
}

}  // namespace

PreparedImpl::PreparedImpl(std::shared_ptr<TableImpl> table, WrittenQuery query,
                           table::PipelineMessage message, std::unique_ptr<KeptPipeline> kept)
    : table_(std::move(table)),
      query_(std::make_unique<const WrittenQuery>(std::move(query))),
      message_(std::move(message)),
      kept_(kept.release()) {}

PreparedImpl::~PreparedImpl() = default;

TableResult<PreparedQuery> PreparedImpl::prepare(std::shared_ptr<TableImpl> table,
                                                 const QueryParts& parts) {
  auto written = write_query(parts, table->schema());
  if (!written) return std::unexpected(std::move(written.error()));
  auto message = table::decode_pipeline(written->message);
  if (!message) return refuse_query(message.error().message());
  auto kept = table->keep(written->message);
  if (!kept) return std::unexpected(std::move(kept.error()));
  return PreparedQuery(std::make_shared<const PreparedImpl>(std::move(table), *std::move(written),
                                                            *std::move(message), *std::move(kept)));
}

TableResult<table::RunConstants> PreparedImpl::constants(
    std::span<const Argument> arguments) const {
  std::vector<std::optional<table::Constant>> changed(message_.constants.size());
  for (const Argument& argument : arguments) {
    bool known = false;
    for (const WrittenQuery::Parameter& parameter : query_->parameters) {
      if (parameter.name != argument.name) continue;
      known = true;
      if (changed[parameter.constant]) return refuse_argument(argument, "it is given twice");
      auto constant = constant_for(argument, message_.constants[parameter.constant]);
      if (!constant) return std::unexpected(std::move(constant.error()));
      changed[parameter.constant] = *std::move(constant);
    }
    if (!known) return refuse_argument(argument, "the query has no such parameter");
  }
  table::RunConstants constants;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const wire::ConstantValue& was = message_.constants[i];
    if (changed[i]) {
      constants.values.push_back(table::constant_value(*changed[i], constants.heap));
    } else {
      wire::ConstantValue same = was;
      if (was.bytes != 0) {
        same.value = constants.heap.size();
        constants.heap += message_.heap.substr(was.value, was.bytes);
      }
      constants.values.push_back(same);
    }
  }
  return constants;
}

TableResult<std::unique_ptr<RowStreamImpl>> PreparedImpl::begin(std::span<const Argument> arguments,
                                                                const TableKey* result_key,
                                                                RunLimits limits) const {
  if (table_->is_copy()) return fail(Code::forked);
  if ((result_key != nullptr) != query_->pipeline.encrypt) {
    return refuse_query(query_->pipeline.encrypt
                            ? "the query was prepared for an encrypted result: a run "
                              "brings its key (QueryOptions::result_key)"
                            : "the query was prepared for a result in clear, and "
                              "takes no key for it");
  }
  const auto keys = table_->keys_of_run(result_key);
  if (!keys) return std::unexpected(keys.error());
  limits.keys = *keys;
  auto run = constants(arguments);
  if (!run) return std::unexpected(std::move(run.error()));
  auto message = table::with_constants(message_, *run);
  if (!message) return refuse_query(message.error().message());
  auto pipeline = table::check_pipeline(*message, table_->schema());
  if (!pipeline) return refuse_query(pipeline.error().message());
  auto query = std::make_shared<const WrittenQuery>(
      WrittenQuery{*std::move(message), *std::move(pipeline), query_->columns, query_->parameters});
  auto begun = table_->begin_kept(*kept_, *run, query->pipeline.result.row_bytes(), limits);
  if (!begun) return std::unexpected(std::move(begun.error()));
  return std::make_unique<RowStreamImpl>(std::move(query), *std::move(begun));
}

}  // namespace espalier::client
