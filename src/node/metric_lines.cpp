// SPDX-License-Identifier: Apache-2.0
#include "node/metric_lines.hpp"

#include <utility>

#include "node/config_text.hpp"
#include "node/metrics.hpp"

namespace espalier::node {
namespace {

constexpr double kNsOfASecond = 1e9;

}  // namespace

void MetricLines::line(std::string_view suffix, Labels labels, std::string_view value) {
  out_ += name_;
  out_ += suffix;
  char before = '{';
  for (const Label& label : labels) {
    out_ += std::exchange(before, ',');
    out_ += label.name;
    out_ += "=\"";
    append_escaped(out_, label.value);
    out_ += '"';
  }
  if (labels.size() != 0) out_ += '}';
  out_ += ' ';
  out_ += value;
  out_ += '\n';
}

void MetricLines::add_histogram(const offload::DurationCounts& counts, Label label) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : counts.buckets) sum += count;
  if (sum == 0) return;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < offload::DurationCounts::kBounds; ++i) {
    below += counts.buckets[i];
    const auto bound = static_cast<double>(offload::DurationCounts::bound_ns(i)) / kNsOfASecond;
    line("_bucket", {label, {"le", fmt::format("{}", bound)}}, fmt::format("{}", below));
  }
  line("_bucket", {label, {"le", "+Inf"}}, fmt::format("{}", sum));
  const double seconds = static_cast<double>(counts.sum_ns) / kNsOfASecond;
  line("_sum", {label}, fmt::format("{}", seconds));
  line("_count", {label}, fmt::format("{}", sum));
}

void append_escaped(std::string& out, std::string_view value) {
  for (const char c : value) {
    switch (c) {
      case '\\': out += "\\\\"; break;
      case '"': out += "\\\""; break;
      case '\n': out += "\\n"; break;
      default: out += c;
    }
  }
}

// A backslash begins an escape, so it is escaped itself.
std::string shown_name(std::string_view name) {
  const bool plain = is_plain(name);
  std::string shown;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      shown += "\\\\";
    } else if (!plain && (byte < 0x20 || byte > 0x7E)) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return shown;
}

}  // namespace espalier::node
