// SPDX-License-Identifier: Apache-2.0
// A query translated for a table with a known schema: the pipeline that runs beside the memory, and
// the rest for the client.
//
// The client does arithmetic over aggregates (a division gives a double), distinct over groups, and
// cuts groups at the limit where needed.
//
// Thread: values; safe to read from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kinds/table/pipeline.hpp"
#include "kinds/table/result.hpp"
#include "kinds/table/value.hpp"
#include "sql/statement.hpp"

namespace espalier::sql {

/// An expression over the items of the pipeline.
struct Output {
  enum class Kind : std::uint8_t { item, constant, negate, add, subtract, multiply, divide };

  Kind kind = Kind::item;
  std::size_t item = 0;
  table::Value constant;
  table::ValueType type;
  std::vector<Output> children;
};

struct OutputColumn {
  std::string name;
  Output output;

  [[nodiscard]] const table::ValueType& type() const { return output.type; }
};

struct Query {
  std::vector<std::byte> message;  ///< the pipeline, as it is sent
  table::Pipeline pipeline;
  std::vector<OutputColumn> columns;
  bool distinct_here = false;               ///< the client leaves out repeated rows of output
  std::optional<std::uint64_t> limit_here;  ///< and cuts them
};

/// Encryption, which a query's text does not specify.
struct Encryption {
  bool table = false;
  bool result = false;
};

/// Errors: unknown columns, type errors, a pipeline beyond its limits.
[[nodiscard]] SqlResult<Query> translate(const Statement& statement, const table::Schema& schema,
                                         Encryption encryption = {});

/// Computes the answer from the rows of a run.
class Answer {
 public:
  using Row = std::span<const table::Value>;
  using Take = std::function<void(Row)>;
  using Taken = std::expected<void, std::string>;

  /// Requires: `query` outlives it.
  Answer(const Query& query, std::uint64_t seed);

  /// Takes rows of the pipeline's result, whole ones; hands out rows of the answer that are
  /// certain. Errors: in words, a value that cannot be worked out.
  Taken take(std::span<const std::byte> rows, const Take& out);
  /// Delivers the rest, after all rows have come.
  Taken finish(const Take& out);
  /// Whether the answer is complete, so that the run may be cancelled.
  [[nodiscard]] bool is_full() const;
  /// Rows handed out.
  [[nodiscard]] std::uint64_t rows() const { return rows_; }

 private:
  Taken hand_out(const std::byte* row, const Take& out);

  const Query& query_;
  table::ResultMerge merge_;
  std::vector<table::Value> values_;
  std::set<std::string> seen_;
  std::uint64_t rows_ = 0;
};

}  // namespace espalier::sql
