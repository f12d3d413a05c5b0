// SPDX-License-Identifier: Apache-2.0
// The lines of one metric in Prometheus format.
//
// Thread: one.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "engine/durations.hpp"

namespace espalier::node {

/// Writes the lines of one metric.
class MetricLines {
 public:
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;

  MetricLines(std::string& out, std::string_view name) : out_(out), name_(name) {}

  void add(std::uint64_t value, Labels labels = {}) { line("", labels, fmt::format("{}", value)); }
  void add(double value, Labels labels = {}) { line("", labels, fmt::format("{}", value)); }
  void add_histogram(const offload::DurationCounts& counts, Label label);

 private:
  void line(std::string_view suffix, Labels labels, std::string_view value);

  std::string& out_;
  std::string_view name_;
};

}  // namespace espalier::node
