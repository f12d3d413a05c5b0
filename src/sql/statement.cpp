// SPDX-License-Identifier: Apache-2.0
#include "sql/statement.hpp"

#include <algorithm>

namespace espalier::sql {
namespace {

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || static_cast<unsigned char>(c) >= 0x80;
}

/// The word at a position: a name or number, a text in quotes, or signs up to the next of these.
std::string word_at(std::string_view text, std::size_t position) {
  if (position >= text.size()) return {};
  std::size_t end = position + 1;
  const char first = text[position];
  if (first == '\'' || first == '"') {
    while (end < text.size() && text[end] != first) ++end;
    end = std::min(end + 1, text.size());
  } else if (in_word(first)) {
    while (end < text.size() && in_word(text[end])) ++end;
  } else {
    constexpr std::string_view kOperatorSigns = "+-*/<>=~!@#%^&|`?";
    const auto is_sign = [&](char c) { return kOperatorSigns.find(c) != std::string_view::npos; };
    while (is_sign(first) && end < text.size() && is_sign(text[end])) ++end;
  }
  return std::string(text.substr(position, end - position));
}

}  // namespace

std::string SqlError::message() const {
  std::string text = "at " + std::to_string(position + 1);
  if (!word.empty()) text += ", '" + word + "'";
  return text + ": " + reason;
}

std::unexpected<SqlError> refuse(std::string_view text, std::size_t position, std::string reason) {
  return std::unexpected(SqlError{position, word_at(text, position), std::move(reason)});
}

bool Expr::same_as(const Expr& other) const {
  return kind == other.kind && text == other.text && op == other.op &&
         aggregate == other.aggregate &&
         std::ranges::equal(children, other.children,
                            [](const Expr& a, const Expr& b) { return a.same_as(b); });
}

bool Expr::has_aggregate() const {
  return kind == ExprKind::aggregate ||
         std::ranges::any_of(children, [](const Expr& child) { return child.has_aggregate(); });
}

}  // namespace espalier::sql
