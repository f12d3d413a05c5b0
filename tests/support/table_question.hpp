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

/// Appends rows, a few appends by chance. Returns how many the table then has.
std::uint64_t append(const Table& table, const table::MemoryRows& rows, base::Random& random);

/// The query that says what a message says, added to one of all rows. Nothing: the public API has
/// no words for it. Requires: the message has a pipeline's form.
std::optional<Query> query_of(Query query, const table::PipelineMessage& message,
                              const table::Schema& schema);

}  // namespace espalier::test
