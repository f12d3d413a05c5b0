// SPDX-License-Identifier: Apache-2.0
// Type checking of expressions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "kinds/table/pipeline.hpp"

namespace espalier::table {

/// Assigns a type to each node of a message, children first.
class TypeCheck {
 public:
  TypeCheck(const Schema& schema, const std::vector<Constant>& constants)
      : schema_(schema), constants_(constants) {}

  /// The node with its type, or a type error in words. Requires: the form was checked.
  std::expected<Node, std::string> check(const wire::ExpressionNode& node,
                                         const std::vector<Node>& before) const;

 private:
  std::expected<ValueType, std::string> leaf(const wire::ExpressionNode& node) const;
  std::expected<ValueType, std::string> arithmetic(wire::ExpressionKind kind, const ValueType& a,
                                                   const ValueType& b) const;
  std::expected<ValueType, std::string> condition(const wire::ExpressionNode& node,
                                                  const std::vector<Node>& before) const;

  const Schema& schema_;
  const std::vector<Constant>& constants_;
};

/// Makes comparisons with char(n) columns ignore trailing blanks of constants, as of the columns:
/// adds such texts to the constants once more, without the blanks.
void compare_chars_without_blanks(std::vector<Node>& nodes, std::vector<Constant>& constants);

/// The type of computed values of this kind.
[[nodiscard]] ValueType computed_type(wire::ValueKind kind, std::uint8_t scale, bool nullable);

/// The stored type of a text of so many bytes.
[[nodiscard]] Type stored_text(std::size_t bytes);

/// Constants in the form of expressions. Requires: the form was checked.
[[nodiscard]] std::vector<Constant> read_constants(const PipelineMessage& message);

}  // namespace espalier::table
