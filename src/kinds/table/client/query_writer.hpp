// SPDX-License-Identifier: Apache-2.0
// Compiles a Query for a known schema: its pipeline, and the names of the answer's columns.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "espalier/query.hpp"
#include "kinds/table/pipeline.hpp"

namespace espalier::client {

/// The parts of a Query.
struct QueryParts {
  std::span<const Expr> conditions;
  std::span<const Output> outputs;  ///< of groups: their keys
  std::span<const Aggregate> aggregates;
  bool projected = false;
  bool grouped = false;
  bool distinct = false;
  std::optional<std::uint64_t> limit;
  bool decrypt = false;  ///< the table's rows
  bool encrypt = false;  ///< the result's
};

struct WrittenQuery {
  std::vector<std::byte> message;  ///< as it is sent
  table::Pipeline pipeline;
  std::vector<AnswerColumn> columns;  ///< one for each of the pipeline's items
  struct Parameter {
    std::string name;
    std::size_t constant;  ///< its number in the message
  };
  std::vector<Parameter> parameters;
};

/// Errors: invalid_argument, in words.
[[nodiscard]] TableResult<WrittenQuery> write_query(const QueryParts& parts,
                                                    const table::Schema& schema);

}  // namespace espalier::client
