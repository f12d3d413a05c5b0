// SPDX-License-Identifier: Apache-2.0
#include "base/record_extent.hpp"

#include <algorithm>

namespace espalier::base {
namespace {

using Kind = RecordExtent::Kind;
constexpr std::size_t kNone = std::string_view::npos;

/// The record that the newline at `newline` ends.
RecordExtent ended_by(std::string_view text, std::size_t newline) {
  const bool carriage_return = newline > 0 && text[newline - 1] == '\r';
  return {Kind::complete, newline - (carriage_return ? 1 : 0), newline + 1};
}

/// The extent of a record that went wrong before `at`: up to the end of that line.
RecordExtent wrong_line(std::string_view text, std::size_t at, bool at_end) {
  const std::size_t newline = text.find('\n', at);
  if (newline == kNone && !at_end) return {Kind::more, 0, 0};
  const std::size_t total = newline == kNone ? text.size() : newline + 1;
  return {Kind::text_after_quote, total, total};
}

/// Position just behind the quote that closes the field whose opening quote stands at `open`.
std::size_t skip_quoted(std::string_view text, std::size_t open) {
  for (std::size_t at = open + 1;;) {
    const std::size_t quote = text.find('"', at);
    if (quote == kNone) return kNone;
    if (quote + 1 == text.size() || text[quote + 1] != '"') return quote + 1;
    at = quote + 2;
  }
}

}  // namespace

RecordExtent line_extent(std::string_view text, bool at_end) {
  const std::size_t newline = text.find('\n');
  if (newline != kNone) return ended_by(text, newline);
  if (!at_end) return {Kind::more, 0, 0};
  return {Kind::complete, text.size(), text.size()};
}

RecordExtent csv_extent(std::string_view text, char separator, bool at_end) {
  const RecordExtent line = line_extent(text, at_end);
  if (line.kind == Kind::complete && text.substr(0, line.total_bytes).find('"') == kNone) {
    return line;  // nearly all records of nearly all files
  }
  const char stops[] = {separator, '\n'};
  for (std::size_t at = 0;;) {
    // `at` is where a field begins.
    std::size_t end = at;
    if (at < text.size() && text[at] == '"') {
      end = skip_quoted(text, at);
      // A quote that is the last byte so far may be the first half of a doubled one.
      if (!at_end && (end == kNone || end + 1 >= text.size())) return {Kind::more, 0, 0};
      if (end == kNone) return {Kind::open_quote, text.size(), text.size()};
      if (end == text.size()) return {Kind::complete, end, end};
      if (text[end] == '\r' && end + 1 < text.size() && text[end + 1] == '\n') ++end;
      if (text[end] != separator && text[end] != '\n') return wrong_line(text, end, at_end);
    } else {
      end = text.find_first_of(std::string_view(stops, 2), at);
      if (end == kNone && !at_end) return {Kind::more, 0, 0};
      if (end == kNone) return {Kind::complete, text.size(), text.size()};
    }
    if (text[end] == '\n') return ended_by(text, end);
    at = end + 1;
  }
}

void split_csv(std::string_view content, char separator, std::vector<std::string_view>& fields,
               std::string& scratch, std::vector<bool>* quoted) {
  if (quoted != nullptr) quoted->clear();
  fields.clear();
  scratch.clear();
  // What is decoded is never longer than the content, so `scratch` does not move under the fields.
  scratch.reserve(content.size());
  for (std::size_t at = 0;;) {
    std::size_t end = 0;
    const bool in_quotes = at < content.size() && content[at] == '"';
    if (quoted != nullptr) quoted->push_back(in_quotes);
    if (in_quotes) {
      end = std::min(skip_quoted(content, at), content.size());
      const std::size_t start = scratch.size();
      for (std::size_t from = at + 1; from + 1 < end; ++from) {
        scratch += content[from];
        if (content[from] == '"') ++from;
      }
      fields.push_back(std::string_view(scratch).substr(start));
    } else {
      end = std::min(content.find(separator, at), content.size());
      fields.push_back(content.substr(at, end - at));
    }
    if (end >= content.size()) return;
    at = end + 1;
  }
}

void append_csv_quoted(std::string& out, std::string_view field) {
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_csv_field(std::string& out, std::string_view field, char separator, bool first) {
  const char special[] = {'"', '\n', '\r', separator};
  const bool plain = field.find_first_of(std::string_view(special, 4)) == kNone &&
                     !(first && field.starts_with(kByteOrderMark));
  if (plain) {
    out += field;
  } else {
    append_csv_quoted(out, field);
  }
}

}  // namespace espalier::base
