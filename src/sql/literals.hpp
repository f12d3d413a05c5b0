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

/// The constant of a literal where a value of kind `wanted` is expected: text becomes a date or
/// timestamp, null one of that kind. `invalid`: no expectation.
/// Errors: in words. Requires: is_literal(expr).
[[nodiscard]] std::expected<table::Constant, std::string> constant_of(const Expr& expr,
                                                                      wire::ValueKind wanted);

}  // namespace espalier::sql
