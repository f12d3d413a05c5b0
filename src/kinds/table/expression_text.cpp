// SPDX-License-Identifier: Apache-2.0
// Expressions as text, for errors and explanations.
#include "kinds/table/pipeline.hpp"
#include "kinds/table/value.hpp"

namespace espalier::table {
namespace {

using wire::ExpressionKind;
using wire::ValueKind;

std::string constant_text(const Constant& constant) {
  if (constant.null) return "null";
  if (constant.type.kind == ValueKind::text) return "'" + constant.text + "'";
  return to_text(Value{false, constant.number, constant.real, {}}, constant.type);
}

}  // namespace

std::string expression_text(const Pipeline& pipeline, std::uint16_t index) {
  const Node& node = pipeline.nodes[index];
  const auto child = [&pipeline](std::uint16_t of) {
    std::string text = expression_text(pipeline, of);
    const bool compound = children_of(pipeline.nodes[of].kind) > 0;
    return compound ? "(" + text + ")" : text;
  };
  const std::string word(name_of(node.kind));
  switch (node.kind) {
    case ExpressionKind::column: return pipeline.schema.column(node.a).name;
    case ExpressionKind::constant: return constant_text(pipeline.constants[node.a]);
    case ExpressionKind::logical_not: return word + " " + child(node.a);
    case ExpressionKind::is_null: return child(node.a) + " " + word;
    case ExpressionKind::between:
      return child(node.a) + " between " + child(node.b) + " and " + child(node.c);
    case ExpressionKind::like:
      return child(node.a) + " like " + constant_text(pipeline.constants[node.b]);
    case ExpressionKind::matches:
      return child(node.a) + ((node.c & wire::kMatchIgnoresCase) != 0 ? " ~* " : " ~ ") +
             constant_text(pipeline.constants[node.b]);
    case ExpressionKind::in: {
      std::string text = child(node.a) + " in (";
      for (std::size_t i = 0; i < node.c; ++i) {
        text += (i == 0 ? "" : ", ") + constant_text(pipeline.constants[node.b + i]);
      }
      return text + ")";
    }
    default: return child(node.a) + " " + word + " " + child(node.b);
  }
}

}  // namespace espalier::table
