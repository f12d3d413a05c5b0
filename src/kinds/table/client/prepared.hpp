// SPDX-License-Identifier: Apache-2.0
// Implementation of PreparedQuery: a pipeline kept beside its table, and which of its constants are
// parameters.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <memory>
#include <span>

#include "channel/interface.hpp"
#include "espalier/query.hpp"
#include "kinds/table/pipeline_message.hpp"

namespace espalier::table {
struct RunConstants;
}

namespace espalier::client {

class KeptPipeline;
class RowStreamImpl;
class TableImpl;
struct QueryParts;
struct RunLimits;
struct WrittenQuery;

class PreparedImpl {
 public:
  /// Errors: as Query::prepare().
  static TableResult<PreparedQuery> prepare(std::shared_ptr<TableImpl> table,
                                            const QueryParts& parts);

  PreparedImpl(std::shared_ptr<TableImpl> table, WrittenQuery query, table::PipelineMessage message,
               std::unique_ptr<KeptPipeline> kept);
  ~PreparedImpl();

  [[nodiscard]] const WrittenQuery& query() const { return *query_; }
  TableResult<std::unique_ptr<RowStreamImpl>> begin(std::span<const Argument> arguments,
                                                    const TableKey* result_key,
                                                    RunLimits limits) const;

 private:
  /// The constants of a run. Errors: invalid_argument, in words.
  [[nodiscard]] TableResult<table::RunConstants> constants(
      std::span<const Argument> arguments) const;

  const std::shared_ptr<TableImpl> table_;
  const std::unique_ptr<const WrittenQuery> query_;
  const table::PipelineMessage message_;
  const std::unique_ptr<KeptPipeline, DeleteUnlessCopy> kept_;
};

}  // namespace espalier::client
