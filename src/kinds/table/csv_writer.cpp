// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/csv_writer.hpp"

#include <utility>

#include "base/assert.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/value_text.hpp"

namespace espalier::table {

CsvWriter::CsvWriter(const Schema& schema, CsvOptions options)
    : schema_(schema), options_(std::move(options)) {
  ESPALIER_ASSERT(wrong_with(options_).empty());
}

void CsvWriter::append_header(std::string& out) {
  if (!options_.header) return;
  for (std::size_t i = 0; i < schema_.columns().size(); ++i) {
    if (i != 0) out += options_.separator;
    base::append_csv_field(out, schema_.column(i).name, options_.separator, first_ && i == 0);
  }
  out += '\n';
  first_ = false;
}

void CsvWriter::append_row(std::string& out, const std::byte* row) {
  for (std::size_t i = 0; i < schema_.columns().size(); ++i) {
    if (i != 0) out += options_.separator;
    append_field(out, i, row);
  }
  out += '\n';
  first_ = false;
}

void CsvWriter::append_field(std::string& out, std::size_t i, const std::byte* row) {
  const Column& column = schema_.column(i);
  if (is_null(column, row)) {
    out += options_.null_text;
    return;
  }
  value_.clear();
  append_value(value_, column, row);
  if (value_ == options_.null_text) {
    base::append_csv_quoted(out, value_);
  } else {
    base::append_csv_field(out, value_, options_.separator, first_ && i == 0);
  }
}

}  // namespace espalier::table
