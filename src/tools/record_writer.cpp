// SPDX-License-Identifier: Apache-2.0
#include "tools/record_writer.hpp"

#include "base/record_extent.hpp"
#include "cmdline/text_codec.hpp"
#include "tools/json_record.hpp"

namespace espalier::tools {
using base::kByteOrderMark;

void RecordWriter::append_header(std::string& out, std::string_view line) {
  if (first_ && line.starts_with(kByteOrderMark)) out += kByteOrderMark;  // as for a line, below
  out += line;
  out += '\n';
  first_ = false;
}

std::optional<std::string> RecordWriter::append(std::string& out, std::string_view key,
                                                std::string_view value) {
  const bool first = first_;
  switch (format_) {
    case Format::lines:
      if (key.find('\n') != std::string_view::npos) return "a key with a newline is not one line";
      if (key.ends_with('\r')) return "a carriage return at the end of a line would be lost";
      if (key.empty()) return "an empty key would be a blank line";
      // A reader skips one byte-order mark: give it one to skip.
      if (first && key.starts_with(kByteOrderMark)) out += kByteOrderMark;
      out += key;
      break;
    case Format::csv:
      base::append_csv_field(out, key, separator_, first);
      out += separator_;
      base::append_csv_field(out, value, separator_, first);
      break;
    case Format::tsv:
      append_tsv_field(out, key);
      out += '\t';
      append_tsv_field(out, value);
      break;
    case Format::json_lines: append_json_record(out, key, value); break;
  }
  out += '\n';
  first_ = false;
  return std::nullopt;
}

void RecordWriter::append_tsv_field(std::string& out, std::string_view field) const {
  if (first_ && field.starts_with(kByteOrderMark)) {
    out += "\\xef";
    field.remove_prefix(1);
  }
  encode_to(out, field, cmdline::Encoding::tsv);
}

}  // namespace espalier::tools
