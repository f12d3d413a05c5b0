// SPDX-License-Identifier: Apache-2.0
#include "tools/record_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "tools/json_record.hpp"
#include "tools/split_tsv.hpp"

namespace espalier::tools {
RecordReader::RecordReader(ByteSource& source, ReaderOptions options)
    : splitter_(source, {std::nullopt, options.record_bytes_max}),
      options_(std::move(options)),
      header_pending_(options_.header) {
  assert(options_.key_column >= 1 && options_.value_column.value_or(1) >= 1);
}

RecordReader::Next RecordReader::next() {
  using Found = base::RecordSplitter::Next;
  if (!started_) {
    if (const Next begun = start(); begun != Next::record) return begun;
  }
  for (;;) {
    const Found found = splitter_.next();
    bad_.line = record_.line = splitter_.line();
    switch (found) {
      case Found::end: return Next::end;
      case Found::failed: return fail_with(splitter_.error());
      case Found::bad: return report(splitter_.reason());
      case Found::record: break;
    }
    if (splitter_.content().empty()) {
      ++blank_lines_;
    } else if (header_pending_) {
      header_pending_ = false;
      header_ = splitter_.content();
    } else {
      return take_record(splitter_.content());
    }
  }
}

/// Detects the format by the first bytes, if it was not given. Returns `record` to go on.
RecordReader::Next RecordReader::start() {
  const auto sample = splitter_.sample(kSampleBytes);
  if (!sample) return fail_with(sample.error());
  started_ = true;
  if (!options_.format) {
    options_.format = format_of_content(*sample, options_.separator, splitter_.sample_is_all());
  }
  if (*options_.format == Format::csv) splitter_.set_separator(options_.separator);
  return Next::record;
}

RecordReader::Next RecordReader::take_record(std::string_view content) {
  switch (*options_.format) {
    case Format::lines:
      columns_ = 1;
      record_.key = content;
      if (options_.number_lines) value_scratch_ = std::to_string(record_.line);
      record_.value = value_scratch_;
      return Next::record;
    case Format::csv:
      base::split_csv(content, options_.separator, fields_, scratch_);
      return take_fields(content);
    case Format::tsv:
      if (auto wrong = split_tsv(content, fields_, scratch_)) return report(std::move(*wrong));
      return take_fields(content);
    case Format::json_lines: return take_json(content);
  }
  std::unreachable();
}

RecordReader::Next RecordReader::take_fields(std::string_view content) {
  const std::uint32_t key = options_.key_column;
  if (columns_ == 0) {
    if (fields_.size() < std::max(key, options_.value_column.value_or(0))) {
      return report(fmt::format(
          "has {} column{}, but the {} is to be column {}", fields_.size(),
          fields_.size() == 1 ? "" : "s", fields_.size() < key ? "key" : "value",
          fields_.size() < key ? key : *options_.value_column));
    }
    columns_ = fields_.size();
    if (!options_.value_column && columns_ > key) options_.value_column = key + 1;
  }
  if (fields_.size() != columns_) {
    const bool stray_comma = *options_.format == Format::csv && fields_.size() > columns_ &&
                             content.find('"') == std::string_view::npos;
    return report(fmt::format("has {} column{} where the first record has {}{}", fields_.size(),
                              fields_.size() == 1 ? "" : "s", columns_,
                              stray_comma ? "; a field with a separator in it needs quotes" : ""));
  }
  record_.key = fields_[key - 1];
  record_.value = options_.value_column ? fields_[*options_.value_column - 1] : std::string_view();
  return Next::record;
}

RecordReader::Next RecordReader::take_json(std::string_view content) {
  if (auto wrong = parse_json_record(content, scratch_, value_scratch_)) {
    return report(std::move(*wrong));
  }
  columns_ = 2;
  record_.key = scratch_;
  record_.value = value_scratch_;
  return Next::record;
}

RecordReader::Next RecordReader::report(std::string reason) {
  bad_.reason = std::move(reason);
  return Next::bad;
}

RecordReader::Next RecordReader::fail_with(Error error) {
  error_ = error;
  return Next::failed;
}

}  // namespace espalier::tools
