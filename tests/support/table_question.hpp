// SPDX-License-Identifier: Apache-2.0
// Pipelines and rows of the internal tests, sent and written through the public API.
#pragma once

#include <cstddef>
#include <optional>

#include "base/random.hpp"
#include "espalier/query.hpp"
#include "kinds/table/pipeline_message.hpp"
#include "kinds/table/schema.hpp"
#include "kinds/table/testing/memory_rows.hpp"

namespace espalier::test {

/// Appends rows, randomly split into a few appends. Returns how many the table then has.
std::uint64_t append(const Table& table, const table::MemoryRows& rows, base::Random& random);

/// The query of a message, added to a query of all rows. Nothing: the public API cannot express it.
/// Requires: the message has a pipeline's form.
std::optional<Query> query_of(Query query, const table::PipelineMessage& message,
                              const table::Schema& schema);

}  // namespace espalier::test
