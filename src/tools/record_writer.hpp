// SPDX-License-Identifier: Apache-2.0
// Writes keys and values as text that RecordReader reads back unchanged.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/record.hpp"

namespace espalier::tools {

/// Appends records to a string, which its owner may empty at any time.
class RecordWriter {
 public:
  explicit RecordWriter(Format format, char separator = ',')
      : format_(format), separator_(separator) {}

  /// Appends a line as it is, before all records: the header.
  void append_header(std::string& out, std::string_view line);

  /// Appends one record. Returns nullopt, or why the format cannot represent it; `out` is unchanged
  /// then.
  /// csv, tsv and json-lines hold every record; lines hold keys without a newline in them or a
  /// carriage return at their end, and drop values.
  [[nodiscard]] std::optional<std::string> append(std::string& out, std::string_view key,
                                                  std::string_view value);

 private:
  void append_tsv_field(std::string& out, std::string_view field) const;

  Format format_;
  char separator_;
  bool first_ = true;
};

}  // namespace espalier::tools
