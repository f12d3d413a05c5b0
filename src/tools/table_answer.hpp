// SPDX-License-Identifier: Apache-2.0
// The rows of a query's answer as text: with tabs between columns, as CSV, or as JSON lines.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "sql/query.hpp"

namespace espalier::tools {

enum class AnswerFormat : std::uint8_t { text, csv, json };
[[nodiscard]] std::optional<AnswerFormat> answer_format(std::string_view name);

class AnswerWriter {
 public:
  /// Both live as long.
  AnswerWriter(std::ostream& out, const sql::Query& query, AnswerFormat format)
      : out_(out), query_(query), format_(format) {}

  /// The line that names the columns, where the format has one.
  void header();
  void row(sql::Answer::Row values);

 private:
  [[nodiscard]] std::string field(const table::Value& value, const table::ValueType& type) const;
  void json_row(sql::Answer::Row values);
  void line(const std::string& text);

  std::ostream& out_;
  const sql::Query& query_;
  const AnswerFormat format_;
};

}  // namespace espalier::tools
