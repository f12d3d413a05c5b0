// SPDX-License-Identifier: Apache-2.0
// A query evaluated at the client, from a table read completely: the baseline without operators
// beside the memory.
#pragma once

#include <cstdint>

#include "kinds/table/client/tables.hpp"
#include "kinds/table/pipeline.hpp"
#include "tools/environment.hpp"

namespace espalier::tools {

struct Pulled {
  wire::QueryNumbers numbers{};  ///< of the run here
  std::uint64_t bytes_received = 0;
};

/// Reads all rows, by READs if the store was connected for that, and runs the pipeline over them as
/// they arrive. Requires: it decrypts nothing, because rows are read in plain text.
[[nodiscard]] Outcome<Pulled> pull_and_run(client::TableImpl& table,
                                           const table::Pipeline& pipeline,
                                           const client::TableImpl::RowSink& sink);

}  // namespace espalier::tools
