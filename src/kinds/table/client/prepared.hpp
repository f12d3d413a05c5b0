// SPDX-License-Identifier: Apache-2.0
// What stands behind a PreparedQuery: a pipeline that is kept beside its table, and which of its
// constants are parameters.
//
// Thread: immutable; safe to use from any.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "espalier/query.hpp"
#include "kinds/table/client/query_writer.hpp"
#include "kinds/table/client/row_stream.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/loaded_pipeline.hpp"

namespace espalier::client {

class PreparedImpl {
 public:
  /// Errors: as Query::prepare().
  static TableResult<PreparedQuery> prepare(std::shared_ptr<TableImpl> table,
                                            const QueryParts& parts);

  PreparedImpl(std::shared_ptr<TableImpl> table, WrittenQuery query, table::PipelineMessage message,
               std::unique_ptr<KeptPipeline> kept)
      : table_(std::move(table)),
        query_(std::move(query)),
        message_(std::move(message)),
        kept_(kept.release()) {}

  [[nodiscard]] const WrittenQuery& query() const { return query_; }
  TableResult<std::unique_ptr<RowStreamImpl>> begin(std::span<const Argument> arguments,
                                                    const TableKey* result_key,
                                                    RunLimits limits) const;

 private:
  /// The constants of a run. Errors: invalid_argument, in words.
  [[nodiscard]] TableResult<table::RunConstants> constants(
      std::span<const Argument> arguments) const;

  const std::shared_ptr<TableImpl> table_;
  const WrittenQuery query_;
  const table::PipelineMessage message_;
  const std::unique_ptr<KeptPipeline, DeleteUnlessCopy> kept_;
};

}  // namespace espalier::client
