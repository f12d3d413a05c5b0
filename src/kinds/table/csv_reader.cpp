// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/csv_reader.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/lower.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/value_text.hpp"

namespace espalier::table {
namespace {

/// The column that a header's field names: of this very name, else of this one in lower case.
std::optional<std::size_t> find_column(const Schema& schema, std::string_view name) {
  if (const auto found = schema.find(name)) return found;
  std::string folded(name);
  std::ranges::transform(folded, folded.begin(), lower);
  return schema.find(folded);
}

std::string count_of(std::size_t fields) {
  return std::to_string(fields) + (fields == 1 ? " field" : " fields");
}

}  // namespace

std::string wrong_with(const CsvOptions& options) {
  const char separator = options.separator;
  if (separator == '"' || separator == '\n' || separator == '\r') {
    return "the separator cannot be a quote or the end of a line";
  }
  const char special[] = {'"', '\n', '\r', separator};
  if (options.null_text.find_first_of(std::string_view(special, 4)) != std::string::npos ||
      options.null_text.find(base::kByteOrderMark) != std::string::npos) {
    return "the text for null cannot hold quotes, separators, ends of lines or byte-order marks";
  }
  return {};
}

std::string describe(const CsvError& error) {
  std::string text;
  if (error.line != 0) text = "line " + std::to_string(error.line);
  if (!error.column.empty()) {
    text += (text.empty() ? "column " : ", column ") + quoted_name(error.column);
  }
  return text.empty() ? error.reason : text + ": " + error.reason;
}

CsvReader::CsvReader(base::ByteSource& source, const Schema& schema, CsvOptions options)
    : schema_(schema),
      options_(std::move(options)),
      splitter_(source, {options_.separator, options_.record_bytes_max}),
      header_pending_(options_.header) {
  ESPALIER_ASSERT(wrong_with(options_).empty());
  if (options_.header) return;
  for (std::size_t i = 0; i < schema_.columns().size(); ++i) columns_.push_back(i);
}

std::expected<std::size_t, CsvFailure> CsvReader::read(std::span<std::byte> rows) {
  const std::uint32_t row_bytes = schema_.row_bytes();
  ESPALIER_ASSERT(!rows.empty() && rows.size() % row_bytes == 0);
  std::size_t count = 0;
  while (!ended_ && count * row_bytes < rows.size()) {
    switch (next(rows.data() + count * row_bytes)) {
      case Found::row:
        ++count;
        ++rows_;
        break;
      case Found::bad:
        if (skipped_ >= options_.skip_bad) {
          (void)failed({Code::invalid_argument, 0, 0});
          return std::unexpected(failure_);
        }
        ++skipped_;
        if (first_skipped_.size() < kSkippedKept) first_skipped_.push_back(failure_.where);
        break;
      case Found::end: ended_ = true; break;
      case Found::failed: return std::unexpected(failure_);
    }
  }
  if (count == 0 && failure_.error.code != Code::invalid) return std::unexpected(failure_);
  return count;
}

CsvReader::Found CsvReader::next(std::byte* row) {
  for (;;) {
    switch (splitter_.next()) {
      case Next::end:
        if (!header_pending_) return Found::end;
        (void)bad("the file has no header line");
        return failed({Code::invalid_argument, 0, 0});
      case Next::failed: failure_.where = {}; return failed(splitter_.error());
      case Next::bad:
        (void)bad(splitter_.reason());
        return header_pending_ ? failed({Code::invalid_argument, 0, 0}) : Found::bad;
      case Next::record: break;
    }
    if (is_blank()) continue;
    if (!header_pending_) return take_row(row);
    header_pending_ = false;
    if (take_header() == Found::bad) return failed({Code::invalid_argument, 0, 0});
  }
}

bool CsvReader::is_blank() const {
  return splitter_.content().empty() && (header_pending_ || columns_.size() != 1);
}

CsvReader::Found CsvReader::take_header() {
  base::split_csv(splitter_.content(), options_.separator, fields_, scratch_);
  std::vector<bool> present(schema_.columns().size());
  for (const std::string_view field : fields_) {
    const auto column = find_column(schema_, field);
    if (!column) {
      return bad("the header names " + quoted_name(field) + ", which is no column of the table");
    }
    if (present[*column]) return bad("the header names this column twice", std::string(field));
    present[*column] = true;
    columns_.push_back(*column);
  }
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) continue;
    const Column& column = schema_.column(i);
    if (!column.nullable) return bad("the header leaves it out, and it is not null", column.name);
    absent_.push_back(i);
  }
  return Found::row;
}

CsvReader::Found CsvReader::take_row(std::byte* row) {
  const std::string_view content = splitter_.content();
  base::split_csv(content, options_.separator, fields_, scratch_, &quoted_);
  if (fields_.size() != columns_.size()) {
    const bool stray = fields_.size() > columns_.size() && content.find('"') == content.npos;
    return bad(count_of(fields_.size()) + " where there should be " +
               std::to_string(columns_.size()) +
               (stray ? "; a field with a separator in it needs quotes" : ""));
  }
  std::memset(row, 0, schema_.row_bytes());
  for (const std::size_t i : absent_) (void)store_null(schema_.column(i), row);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Column& column = schema_.column(columns_[i]);
    if (!quoted_[i] && fields_[i] == options_.null_text) {
      if (!store_null(column, row)) return bad("null, and it is not null", column.name);
    } else if (auto wrong = parse_value(column, fields_[i], row)) {
      return bad(*std::move(wrong), column.name);
    }
  }
  return Found::row;
}

CsvReader::Found CsvReader::bad(std::string reason, std::string column) {
  failure_.where = {splitter_.line(), std::move(column), std::move(reason)};
  return Found::bad;
}

CsvReader::Found CsvReader::failed(Error error) {
  failure_.error = error;
  ended_ = true;
  return Found::failed;
}

}  // namespace espalier::table
