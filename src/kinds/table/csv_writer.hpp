// SPDX-License-Identifier: Apache-2.0
// Writes rows as CSV [RFC 4180] that kinds/table/csv_reader.hpp reads back to the same rows: quotes
// where needed, floats as the shortest text that reads back as the same value. Lines end in a
// newline alone.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <string>

#include "kinds/table/csv_reader.hpp"
#include "kinds/table/schema.hpp"

namespace espalier::table {

class CsvWriter {
 public:
  /// Requires: wrong_with(options) is empty; the schema outlives the writer.
  CsvWriter(const Schema& schema, CsvOptions options);

  /// Appends the header line, if the options ask for one.
  void append_header(std::string& out);
  /// Appends one row, which may be arbitrary bytes.
  void append_row(std::string& out, const std::byte* row);

 private:
  void append_field(std::string& out, std::size_t column, const std::byte* row);

  const Schema& schema_;
  const CsvOptions options_;
  std::string value_;
  bool first_ = true;  // nothing written yet
};

}  // namespace espalier::table
