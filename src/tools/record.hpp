// SPDX-License-Identifier: Apache-2.0
// The file formats that the command reads and writes, and what it can say about one record of them.
//
//   lines       one key per line, the whole line; values are empty (or the line's number)
//   csv         RFC 4180: a field in "quotes" may hold separators, newlines and, doubled, quotes
//   tsv         fields end at a tab; \t \n \r \\ and \xNN stand for bytes that a field cannot hold
//   json-lines  one object per line: {"key":"k","value":"v"}; bytes that are no UTF-8 stand in hex
//               under "key_hex" and "value_hex"
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier::tools {

enum class Format : std::uint8_t { lines = 1, csv = 2, tsv = 3, json_lines = 4 };

[[nodiscard]] std::string_view name(Format format);

/// The format that a file's name asks for by its ending (.csv, .tsv, .tab, .jsonl, .ndjson);
/// nullopt for any other name.
[[nodiscard]] std::optional<Format> format_of_name(std::string_view path);

/// How much of a file's beginning its format is told from.
inline constexpr std::size_t kSampleBytes = std::size_t{16} << 10;

/// The format that the first bytes of a file look like, of which the first kSampleBytes count.
/// JSON objects are told by their brace; tabs or separators make a TSV or CSV file if every line of
/// the sample has the same number of them, at least one. What is left is lines.
/// `whole_file`: nothing follows the sample.
[[nodiscard]] Format format_of_content(std::string_view sample, char separator, bool whole_file);

/// One key and its value. The bytes belong to whoever delivered the record.
struct Record {
  std::uint64_t line = 0;  ///< number of the line it begins on, from 1
  std::string_view key;
  std::string_view value;
};

/// Lines that are no record, and why.
struct BadRecord {
  std::uint64_t line = 0;
  std::string reason;
};

}  // namespace espalier::tools
