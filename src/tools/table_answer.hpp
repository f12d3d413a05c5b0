// SPDX-License-Identifier: Apache-2.0
// Prints the rows of a query's answer: tab-separated, as CSV, or as JSON lines.
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
  /// Both outlive it.
  AnswerWriter(std::ostream& out, const sql::Query& query, AnswerFormat format)
      : out_(out), query_(query), format_(format) {}

  /// Writes a row, and before the first one the header line, if the format has one.
  void row(sql::Answer::Row values);
  /// Ends the answer: without rows it is the header line alone.
  void finish() { header(); }

 private:
  void header();
  [[nodiscard]] std::string field(const table::Value& value, const table::ValueType& type) const;
  void json_row(sql::Answer::Row values);
  void line(const std::string& text);

  std::ostream& out_;
  const sql::Query& query_;
  const AnswerFormat format_;
  bool has_header_ = false;
};

}  // namespace espalier::tools
