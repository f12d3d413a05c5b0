// SPDX-License-Identifier: Apache-2.0
#include "base/record_splitter.hpp"

#include <algorithm>
#include <utility>

namespace espalier::base {
namespace {

constexpr std::uint64_t kLineEndBytesMax = 2;

std::uint64_t count_newlines(std::string_view text) {
  return static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

}  // namespace

Result<std::string_view> RecordSplitter::sample(std::size_t bytes) {
  while (!window_.at_end() && window_.view().size() <= bytes) {
    if (auto grown = window_.grow(); !grown) return std::unexpected(grown.error());
  }
  return window_.view();
}

RecordSplitter::Next RecordSplitter::next() {
  release();
  if (!started_) {
    if (auto first = sample(kByteOrderMark.size()); !first) return fail_with(first.error());
    started_ = true;
    if (window_.view().starts_with(kByteOrderMark)) window_.consume(kByteOrderMark.size());
  }
  for (;;) {
    record_line_ = line_;
    if (!window_.view().empty()) {
      const RecordExtent found = extent();
      if (found.kind == RecordExtent::Kind::open_quote) {
        return leave_line_out("a quote opens here and never closes");
      }
      if (found.kind != RecordExtent::Kind::more) return take(found);
      // The end of a record that is not too long would be at hand by now.
      if (window_.view().size() > options_.record_bytes_max + kLineEndBytesMax) {
        return take_overlong(window_.view());
      }
    } else if (window_.at_end()) {
      return Next::end;
    }
    if (auto grown = window_.grow(); !grown) return fail_with(grown.error());
  }
}

RecordExtent RecordSplitter::extent() const {
  if (options_.separator) return csv_extent(window_.view(), *options_.separator, window_.at_end());
  return line_extent(window_.view(), window_.at_end());
}

RecordSplitter::Next RecordSplitter::take(RecordExtent extent) {
  content_ = window_.view().substr(0, extent.content_bytes);
  if (content_.size() > options_.record_bytes_max) return take_overlong(content_);
  pending_bytes_ = extent.total_bytes;
  if (extent.kind == RecordExtent::Kind::complete) return Next::record;
  const std::uint64_t last = line_ + count_newlines(content_.substr(0, content_.size() - 1));
  std::string span;
  if (last > line_) {
    const std::string last_line = std::to_string(last);
    span = " on line " + last_line + "; lines " + std::to_string(line_) + " to " + last_line +
           " are left out";
  }
  return report("text stands behind a closing quote" + span +
                "; inside quotes, write \"\" for a quote");
}

/// The record of which this is the beginning is too long. Where it ends is not asked: what is left
/// out must not depend on how much of it is at hand.
RecordSplitter::Next RecordSplitter::take_overlong(std::string_view begin) {
  const bool several_lines = begin.substr(0, begin.size() - 1).find('\n') != begin.npos;
  const std::string limit = std::to_string(options_.record_bytes_max) + " bytes";
  return leave_line_out(several_lines ? "a quote opens here and does not close within " + limit
                                      : "the line is longer than " + limit);
}

/// Leaves out the first line of the view, however long, without keeping it.
RecordSplitter::Next RecordSplitter::leave_line_out(std::string reason) {
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
  return report(std::move(reason));
}

RecordSplitter::Next RecordSplitter::report(std::string reason) {
  content_ = {};
  reason_ = std::move(reason);
  return Next::bad;
}

RecordSplitter::Next RecordSplitter::fail_with(Error error) {
  error_ = error;
  return Next::failed;
}

void RecordSplitter::release() {
  const std::size_t count = std::exchange(pending_bytes_, 0);
  line_ += count_newlines(window_.view().substr(0, count));
  window_.consume(count);
}

}  // namespace espalier::base
