// SPDX-License-Identifier: Apache-2.0
// Which types the nodes of expressions take and give.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "kinds/table/pipeline.hpp"

namespace espalier::table {

/// Gives each node of a message its type, children first.
class TypeCheck {
 public:
  TypeCheck(const Schema& schema, const std::vector<Constant>& constants)
      : schema_(schema), constants_(constants) {}

  /// The node with its type, or in words why it has none. Requires: the form was checked.
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

/// Comparisons with char(n) columns leave out the blanks behind their constants' texts, as they do
/// behind the columns': such texts are added to the constants once more, without blanks.
void compare_chars_without_blanks(std::vector<Node>& nodes, std::vector<Constant>& constants);

/// A type that computed values of this kind have.
[[nodiscard]] ValueType computed_type(wire::ValueKind kind, std::uint8_t scale, bool nullable);

/// How a result holds a text of so many bytes.
[[nodiscard]] Type stored_text(std::size_t bytes);

/// Constants as expressions use them. Requires: the form was checked.
[[nodiscard]] std::vector<Constant> read_constants(const PipelineMessage& message);

}  // namespace espalier::table
