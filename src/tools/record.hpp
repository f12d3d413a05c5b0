// SPDX-License-Identifier: Apache-2.0
// Input and output file formats of the command, and errors of single records.
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

/// The format by a file name's extension (.csv, .tsv, .tab, .jsonl, .ndjson); nullopt for any other
/// name.
[[nodiscard]] std::optional<Format> format_of_name(std::string_view path);

/// Size of the sample by which a format is detected.
inline constexpr std::size_t kSampleBytes = std::size_t{16} << 10;

/// Detects the format by the first kSampleBytes of a file. A brace indicates JSON objects; tabs or
/// separators indicate TSV or CSV if every line of the sample has the same number of them, at least
/// one. Otherwise the format is lines. `whole_file`: nothing follows the sample.
[[nodiscard]] Format format_of_content(std::string_view sample, char separator, bool whole_file);

/// One key and its value. The bytes belong to the source of the record.
struct Record {
  std::uint64_t line = 0;  ///< number of the line it begins on, from 1
  std::string_view key;
  std::string_view value;
};

/// Lines that are no valid record, and the reason.
struct BadRecord {
  std::uint64_t line = 0;
  std::string reason;
};

}  // namespace espalier::tools
