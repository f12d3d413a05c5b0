// SPDX-License-Identifier: Apache-2.0
#include "tools/table_answer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/record_extent.hpp"
#include "cmdline/text_codec.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

// An empty text is in quotes, for null is an empty field without, as table export writes it.
std::string csv_field(std::string_view text) {
  std::string field;
  if (text.empty()) {
    base::append_csv_quoted(field, text);
  } else {
    base::append_csv_field(field, text, ',', false);
  }
  return field;
}

bool is_number(const table::ValueType& type) { return table::is_numeric(type.kind); }

}  // namespace

std::optional<AnswerFormat> answer_format(std::string_view name) {
  if (name == "text") return AnswerFormat::text;
  if (name == "csv") return AnswerFormat::csv;
  if (name == "json") return AnswerFormat::json;
  return std::nullopt;
}

void AnswerWriter::line(const std::string& text) { out_ << text << '\n'; }

void AnswerWriter::header() {
  if (format_ == AnswerFormat::json || std::exchange(has_header_, true)) return;
  std::string text;
  for (const sql::OutputColumn& column : query_.columns) {
    if (!text.empty()) text += format_ == AnswerFormat::csv ? ',' : '\t';
    text += format_ == AnswerFormat::csv ? csv_field(column.name)
                                         : encode(column.name, cmdline::Encoding::escaped);
  }
  line(text);
}

std::string AnswerWriter::field(const table::Value& value, const table::ValueType& type) const {
  if (format_ == AnswerFormat::csv) {
    return value.null ? std::string() : csv_field(table::to_text(value, type));
  }
  return encode(table::to_text(value, type), cmdline::Encoding::escaped);
}

void AnswerWriter::row(sql::Answer::Row values) {
  if (format_ == AnswerFormat::json) return json_row(values);
  header();
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) text += format_ == AnswerFormat::csv ? ',' : '\t';
    text += field(values[i], query_.columns[i].type());
  }
  line(text);
}

// Numbers of any length stand as they are: what reads them decides how exact it is.
void AnswerWriter::json_row(sql::Answer::Row values) {
  std::string text = "{";
  for (std::size_t i = 0; i < values.size(); ++i) {
    const table::ValueType& type = query_.columns[i].type();
    if (i != 0) text += ',';
    text += nlohmann::json(query_.columns[i].name)
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    text += ':';
    const std::string shown = table::to_text(values[i], type);
    const bool finite = shown.find_first_not_of("-+.0123456789eE") == std::string::npos;
    if (values[i].null) {
      text += "null";
    } else if (type.kind == wire::ValueKind::boolean || (is_number(type) && finite)) {
      text += shown;
    } else {
      text += nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    }
  }
  line(text + "}");
}

}  // namespace espalier::tools
