// SPDX-License-Identifier: Apache-2.0
#include "tools/record_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "tools/json_record.hpp"

namespace espalier::tools {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::uint64_t count_newlines(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

}  // namespace

RecordReader::RecordReader(ByteSource& source, ReaderOptions options)
    : window_(source), options_(std::move(options)), header_pending_(options_.header) {
  assert(options_.key_column >= 1 && options_.value_column.value_or(1) >= 1);
}

RecordReader::Next RecordReader::next() {
  release();
  if (!started_) {
    if (const Next begun = start(); begun != Next::record) return begun;
  }
  for (;;) {
    if (window_.view().empty()) {
      if (window_.at_end()) return Next::end;
      if (auto grown = window_.grow(); !grown) return fail_with(grown.error());
      continue;
    }
    const Extent found = extent();
    if (found.kind == Extent::Kind::more) {
      if (window_.view().size() > options_.record_bytes_max) return take_overlong(false);
      if (auto grown = window_.grow(); !grown) return fail_with(grown.error());
      continue;
    }
    if (found.kind == Extent::Kind::open_quote) return take_overlong(true);
    if (found.content_bytes == 0) {
      ++blank_lines_;
      advance(found.total_bytes);
      continue;
    }
    if (header_pending_ && found.kind == Extent::Kind::complete) {
      header_pending_ = false;
      header_ = window_.view().substr(0, found.content_bytes);
      advance(found.total_bytes);
      continue;
    }
    return take_record(found);
  }
}

/// Looks at the first bytes: a byte-order mark is skipped, and the format told if nobody said it.
/// Returns `record` to go on.
RecordReader::Next RecordReader::start() {
  while (!window_.at_end() && window_.view().size() <= kSampleBytes) {
    if (auto grown = window_.grow(); !grown) return fail_with(grown.error());
  }
  started_ = true;
  if (!options_.format) {
    options_.format = format_of_content(window_.view(), options_.separator, window_.at_end());
  }
  if (window_.view().starts_with(kByteOrderMark)) window_.consume(kByteOrderMark.size());
  return Next::record;
}

Extent RecordReader::extent() const {
  if (*options_.format == Format::csv) {
    return csv_extent(window_.view(), options_.separator, window_.at_end());
  }
  return line_extent(window_.view(), window_.at_end());
}

RecordReader::Next RecordReader::take_record(Extent extent) {
  bad_.line = record_.line = line_;
  pending_bytes_ = extent.total_bytes;
  const std::string_view content = window_.view().substr(0, extent.content_bytes);
  if (extent.content_bytes > options_.record_bytes_max) {
    return report(fmt::format("the record is longer than {} bytes", options_.record_bytes_max));
  }
  if (extent.kind == Extent::Kind::text_after_quote) {
    const std::uint64_t last = line_ + count_newlines(content.substr(0, content.size() - 1));
    std::string span;
    if (last > line_) {
      span = fmt::format(" on line {0}; lines {1} to {0} are left out", last, line_);
    }
    return report("text stands behind a closing quote" + span +
                  "; inside quotes, write \"\" for a quote");
  }
  switch (*options_.format) {
    case Format::lines:
      columns_ = 1;
      record_.key = content;
      if (options_.number_lines) value_scratch_ = std::to_string(line_);
      record_.value = value_scratch_;
      return Next::record;
    case Format::csv:
      split_csv(content, options_.separator, fields_, scratch_);
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

/// The record at the front of the view has no end within the limit, or within the file. Leaves out
/// its first line, however long.
RecordReader::Next RecordReader::take_overlong(bool open_quote) {
  bad_.line = line_;
  const std::size_t newline = window_.view().find('\n');
  if (open_quote || newline != std::string_view::npos) {
    pending_bytes_ = newline == std::string_view::npos ? window_.view().size() : newline + 1;
    return report(open_quote
                      ? "a quote opens here and never closes"
                      : fmt::format("a quote opens here and does not close within {} bytes",
                                    options_.record_bytes_max));
  }
  for (;;) {
    const std::size_t end = window_.view().find('\n');
    if (end != std::string_view::npos) {
      pending_bytes_ = end + 1;
      break;
    }
    window_.consume(window_.view().size());
    if (window_.at_end()) break;
    if (auto grown = window_.grow(); !grown) return fail_with(grown.error());
  }
  return report(fmt::format("the line is longer than {} bytes", options_.record_bytes_max));
}

RecordReader::Next RecordReader::report(std::string reason) {
  bad_.reason = std::move(reason);
  return Next::bad;
}

RecordReader::Next RecordReader::fail_with(Error error) {
  error_ = error;
  return Next::failed;
}

void RecordReader::release() {
  if (pending_bytes_ > 0) advance(std::exchange(pending_bytes_, 0));
}

void RecordReader::advance(std::size_t count) {
  line_ += count_newlines(window_.view().substr(0, count));
  window_.consume(count);
}

}  // namespace espalier::tools
