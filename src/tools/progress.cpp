// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/numbers.hpp"

namespace espalier::tools {

Progress::Progress(Environment& environment, std::string label,
                   std::optional<std::uint64_t> total_bytes)
    : environment_(environment),
      label_(std::move(label)),
      total_bytes_(total_bytes),
      enabled_(environment.err_is_terminal),
      start_ns_(environment.now_ns()),
      next_ns_(start_ns_ + kFirstNs) {}

void Progress::wipe() {
  constexpr std::string_view kEraseLine = "\r\x1b[K";
  if (shown_) environment_.err << kEraseLine << std::flush;
  shown_ = false;
}

std::string Progress::line(std::string_view label, std::uint64_t done_bytes,
                           std::optional<std::uint64_t> total_bytes, std::uint64_t records,
                           double seconds) {
  const double elapsed = std::max(seconds, 1e-9);
  const double bytes_per_s = static_cast<double>(done_bytes) / elapsed;
  const double records_per_s = static_cast<double>(records) / elapsed;
  std::string text = fmt::format("{}: {} records, {} of ", label, format_count(records),
                                 format_bytes(done_bytes));
  text += total_bytes ? format_bytes(*total_bytes) : "?";
  if (total_bytes && *total_bytes > 0) {
    // A file may grow while it is read.
    const double share = static_cast<double>(done_bytes) / static_cast<double>(*total_bytes);
    text += fmt::format(" ({:.0f} %)", 100 * std::min(share, 1.0));
  }
  text += fmt::format(", {}/s, {}/s", format_count(static_cast<std::uint64_t>(records_per_s)),
                      format_bytes(static_cast<std::uint64_t>(bytes_per_s)));
  if (total_bytes && *total_bytes >= done_bytes && done_bytes > 0) {
    const auto left_bytes = static_cast<double>(*total_bytes - done_bytes);
    text += fmt::format(", {} left", format_duration(left_bytes / bytes_per_s));
  }
  return text;
}

std::string Progress::items_line(std::string_view label, std::uint64_t done, std::uint64_t total,
                                 double seconds) {
  const double items_per_s = static_cast<double>(done) / std::max(seconds, 1e-9);
  std::string text = fmt::format("{}: {} of {} items", label, format_count(done),
                                 format_count(std::max(done, total)));
  if (total != 0) {
    text += fmt::format(
        " ({:.0f} %)", 100 * std::min(static_cast<double>(done) / static_cast<double>(total), 1.0));
  }
  text += fmt::format(", {}/s", format_count(static_cast<std::uint64_t>(items_per_s)));
  if (total >= done && done > 0) {
    const auto left = static_cast<double>(total - done);
    text += fmt::format(", {} left", format_duration(left / items_per_s));
  }
  return text;
}

void Progress::update_items(std::uint64_t done, std::uint64_t total) {
  if (!enabled_) return;
  if (const auto seconds = due()) write(items_line(label_, done, total, *seconds));
}

void Progress::show(std::uint64_t done_bytes, std::uint64_t records) {
  if (const auto seconds = due()) write(line(label_, done_bytes, total_bytes_, records, *seconds));
}

std::optional<double> Progress::due() {
  const std::uint64_t now_ns = environment_.now_ns();
  if (now_ns < next_ns_) return std::nullopt;
  next_ns_ = now_ns + kEveryNs;
  return static_cast<double>(now_ns - start_ns_) * 1e-9;
}

void Progress::write(const std::string& line) {
  environment_.err << "\r\x1b[K" << line << std::flush;
  shown_ = true;
}

}  // namespace espalier::tools
