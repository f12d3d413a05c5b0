// SPDX-License-Identifier: Apache-2.0
#include "tools/record.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace espalier::tools {
namespace {

/// How often `wanted` stands in `line` outside of quotes.
std::size_t count_unquoted(std::string_view line, char wanted) {
  std::size_t count = 0;
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == wanted && !quoted) ++count;
  }
  return count;
}

/// Whether every line of the sample holds the same number of `wanted`, at least one.
bool splits_evenly(std::string_view sample, char wanted, bool whole_file) {
  constexpr std::size_t kSampleLines = 32;
  std::size_t expected = 0;
  for (std::size_t lines = 0; !sample.empty() && lines < kSampleLines;) {
    const std::size_t newline = sample.find('\n');
    // The last line of a sample may be cut off anywhere, unless the file ends there.
    if (newline == std::string_view::npos && !whole_file && lines > 0) break;
    std::string_view line = sample.substr(0, newline);
    sample.remove_prefix(newline == std::string_view::npos ? sample.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::size_t count = count_unquoted(line, wanted);
    if (count == 0 || (lines > 0 && count != expected)) return false;
    expected = count;
    ++lines;
  }
  return expected > 0;
}

}  // namespace

std::string_view name(Format format) {
  switch (format) {
    case Format::lines: return "lines";
    case Format::csv: return "csv";
    case Format::tsv: return "tsv";
    case Format::json_lines: return "json-lines";
  }
  return "unknown";
}

std::optional<Format> format_of_name(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, Format>, 5> kEndings{{
      {".csv", Format::csv},
      {".tsv", Format::tsv},
      {".tab", Format::tsv},
      {".jsonl", Format::json_lines},
      {".ndjson", Format::json_lines},
  }};
  std::string lower(path);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  for (const auto& [ending, format] : kEndings) {
    if (lower.ends_with(ending)) return format;
  }
  return std::nullopt;
}

Format format_of_content(std::string_view sample, char separator, bool whole_file) {
  whole_file = whole_file && sample.size() <= kSampleBytes;
  sample = sample.substr(0, kSampleBytes);
  if (sample.starts_with("\xEF\xBB\xBF")) sample.remove_prefix(3);
  const std::size_t first = sample.find_first_not_of("\r\n ");
  if (first == std::string_view::npos) return Format::lines;
  if (sample.substr(first).starts_with("{\"")) return Format::json_lines;
  if (splits_evenly(sample, '\t', whole_file)) return Format::tsv;
  if (splits_evenly(sample, separator, whole_file)) return Format::csv;
  return Format::lines;
}

}  // namespace espalier::tools
