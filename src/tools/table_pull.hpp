// SPDX-License-Identifier: Apache-2.0
// A query worked out at the client, from a table that is read whole: what there would be without
// operators beside the memory, to compare with.
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

/// Reads all rows, by READs where the store was connected for that, and runs the pipeline over them
/// as they come. Requires: it decrypts nothing, for rows are read in plain text.
[[nodiscard]] Outcome<Pulled> pull_and_run(client::TableImpl& table,
                                           const table::Pipeline& pipeline,
                                           const client::TableImpl::RowSink& sink);

}  // namespace espalier::tools
