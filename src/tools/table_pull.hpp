// SPDX-License-Identifier: Apache-2.0
// A query worked out at the client, from a table that is read whole: what there would be without
// operators beside the memory, to compare with.
#pragma once

#include <cstdint>
#include <vector>

#include "client/tables.hpp"
#include "table/pipeline.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

/// The pipeline that gives every row of a table as it is. Its result has the table's schema.
[[nodiscard]] table::PipelineResult<std::vector<std::byte>> whole_table(const table::Schema& schema,
                                                                        bool encrypted = false);

struct Pulled {
  wire::QueryNumbers numbers{};  ///< of the run here
  std::uint64_t bytes_received = 0;
};

/// Reads all rows, then runs the pipeline over them. Cost: memory for the whole table.
[[nodiscard]] Outcome<Pulled> pull_and_run(client::TableImpl& table,
                                           const table::Pipeline& pipeline,
                                           const client::TableImpl::RowSink& sink);

}  // namespace espalier::tools
