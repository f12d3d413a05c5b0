// SPDX-License-Identifier: Apache-2.0
// The node's counters and gauges, each declared once: its name, type, meaning and source. The table
// yields the page of metrics, the answer to node_stats, and the output of `espalier stats` and
// `espalier top`. A test compares docs/metrics.md with it.
//
// A number of the node as a whole is read, and reported as a sample (wire/samples.hpp); one that
// each worker, offload or object has is a list of lines, written from NodeNumbers.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wire/samples.hpp"

namespace espalier::node {

struct NodeNumbers;
struct Reading;
class MetricLines;

/// A number; nothing where this node has none: it has no log, or is no device.
using Told = std::optional<std::uint64_t>;

struct NodeNumber {
  /// "connection_cookies": the metric is espalier_connection_cookies_total, since it is a counter.
  /// "_nanoseconds" becomes seconds in the metrics.
  std::string_view name;
  std::string_view type;           ///< counter, gauge or histogram
  std::string_view json{};         ///< "roce.cookies_sent": its path in the JSON of commands, if
                                   ///< any
  std::string_view help{};         ///< of the first of its name
  std::string_view labels{};       ///< separated by commas; empty: none
  std::string_view label_value{};  ///< of a node number's only label
  bool is_truth = false;           ///< JSON shows it as true or false
  Told (*read)(const Reading&) = nullptr;                     ///< null: a list
  void (*write)(MetricLines&, const NodeNumbers&) = nullptr;  ///< null: its sample is the line

  /// Reports it with this label, beside others of its name.
  NodeNumber& with(std::string_view label, std::string_view value) {
    labels = label;
    label_value = value;
    return *this;
  }
  NodeNumber& truth() {
    is_truth = true;
    return *this;
  }
  /// Its metrics have a line for each value of this label.
  NodeNumber& lines(std::string_view label, void (*written)(MetricLines&, const NodeNumbers&)) {
    labels = label;
    write = written;
    return *this;
  }
};

/// In output order; those of one name are adjacent.
[[nodiscard]] std::span<const NodeNumber> node_numbers();

[[nodiscard]] std::string metric_name(const NodeNumber& number);

/// Requires: it is read, not a list.
[[nodiscard]] wire::Sample sample_of(const NodeNumber& number, std::uint64_t value);

}  // namespace espalier::node
