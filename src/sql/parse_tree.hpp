// SPDX-License-Identifier: Apache-2.0
// PostgreSQL's parser, and its trees as JSON.
//
// Each node of a tree is an object with one key, its kind, whose members are the node's. Members
// that are 0, false or empty are left out.
//
// Thread: safe; the parser keeps its memory by thread.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "sql/statement.hpp"

namespace espalier::sql {

using Json = nlohmann::json;

/// The tree of a text. Errors: the parser's.
[[nodiscard]] SqlResult<Json> parse_tree(const std::string& text);

/// The first position that a node or what is in it names, else `otherwise`.
[[nodiscard]] std::size_t position_of(const Json& node, std::size_t otherwise);

/// The kind of a node, and its members.
struct TreeNode {
  std::string_view kind;
  const Json* members;
};
[[nodiscard]] TreeNode tree_node(const Json& node);

/// The first member whose name is not listed, null if there is none.
[[nodiscard]] const std::string* unlisted_member(const Json& members,
                                                 std::initializer_list<std::string_view> listed);

/// The text of a node of kind String; empty if it is another.
[[nodiscard]] std::string string_of(const Json& node);

}  // namespace espalier::sql
