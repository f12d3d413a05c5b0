// SPDX-License-Identifier: Apache-2.0
#include "sql/parse_tree.hpp"

#include <pg_query.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "base/utf8.hpp"

namespace espalier::sql {
namespace {

/// Frees what the parser gave.
class Parsed {
 public:
  explicit Parsed(const char* text) : result_(pg_query_parse(text)) {}
  Parsed(const Parsed&) = delete;
  Parsed& operator=(const Parsed&) = delete;
  ~Parsed() { pg_query_free_parse_result(result_); }

  [[nodiscard]] const PgQueryParseResult& get() const { return result_; }

 private:
  PgQueryParseResult result_;
};

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

std::size_t first_position(const Json& node) {
  std::size_t first = kNone;
  if (node.is_object()) {
    const auto own = node.find("location");
    if (own != node.end() && own->is_number_unsigned()) first = own->get<std::size_t>();
  }
  if (node.is_structured()) {
    for (const Json& part : node) first = std::min(first, first_position(part));
  }
  return first;
}

/// Without the word, for that is what cannot be shown.
std::unexpected<SqlError> not_utf8(const std::string& text, std::size_t position) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(text[position]);
  return std::unexpected(SqlError{position, "",
                                  std::string("the byte 0x") + kDigits[byte >> 4] +
                                      kDigits[byte & 15] + " begins no character of UTF-8"});
}

}  // namespace

SqlResult<Json> parse_tree(const std::string& text) {
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    return refuse(text, zero, "a query has no zero bytes");
  }
  if (const std::size_t good = base::utf8_prefix_bytes(text); good != text.size()) {
    return not_utf8(text, good);
  }
  const Parsed parsed(text.c_str());
  if (const PgQueryError* error = parsed.get().error) {
    const auto position = static_cast<std::size_t>(std::max(error->cursorpos, 1)) - 1;
    return refuse(text, position, error->message);
  }
  Json tree = Json::parse(parsed.get().parse_tree, nullptr, false);
  if (tree.is_discarded()) return refuse(text, 0, "the parser's tree cannot be read");
  return tree;
}

std::size_t position_of(const Json& node, std::size_t otherwise) {
  const std::size_t first = first_position(node);
  return first == kNone ? otherwise : first;
}

TreeNode tree_node(const Json& node) {
  static const Json empty = Json::object();
  if (!node.is_object() || node.size() != 1 || !node.begin()->is_object()) return {"", &empty};
  return {node.begin().key(), &node.begin().value()};
}

const std::string* unlisted_member(const Json& members,
                                   std::initializer_list<std::string_view> listed) {
  for (auto at = members.begin(); at != members.end(); ++at) {
    if (std::ranges::find(listed, std::string_view(at.key())) == listed.end()) return &at.key();
  }
  return nullptr;
}

std::string string_of(const Json& node) {
  const TreeNode string = tree_node(node);
  return string.kind == "String" ? string.members->value("sval", "") : "";
}

}  // namespace espalier::sql
