// SPDX-License-Identifier: Apache-2.0
// Literals of queries as constants of pipelines.
//
// Thread: safe, no state.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "kinds/table/pipeline.hpp"
#include "sql/statement.hpp"

namespace espalier::sql {

/// Whether an expression is a literal, perhaps behind minus signs.
[[nodiscard]] bool is_literal(const Expr& expr);

/// The constant that a literal means where a value of kind `wanted` is looked for: text becomes a
/// date or timestamp, null one of that kind. `invalid`: nothing is looked for.
/// Errors: in words. Requires: is_literal(expr).
[[nodiscard]] std::expected<table::Constant, std::string> constant_of(const Expr& expr,
                                                                      wire::ValueKind wanted);

}  // namespace espalier::sql
