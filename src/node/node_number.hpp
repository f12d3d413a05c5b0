// SPDX-License-Identifier: Apache-2.0
// The numbers of a node, each declared once: its name, what it is, what it means and how it is
// read. From the table come the page of metrics, the answer to node_stats, and what `espalier
// stats` and `espalier top` show. docs/metrics.md is held against it.
//
// A number of the node as a whole is read, and told as a sample (wire/samples.hpp); one that each
// worker, offload or object has is a list of lines, written of NodeNumbers.
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

/// A number, or nothing where this node has none: it has no log, or is no device.
using Told = std::optional<std::uint64_t>;

struct NodeNumber {
  /// "connection_cookies": its metric is espalier_connection_cookies_total, for it is a counter.
  /// One that ends with "_nanoseconds" is in metrics one of seconds.
  std::string_view name;
  std::string_view type;           ///< counter, gauge or histogram
  std::string_view json{};         ///< "roce.cookies_sent": where JSON of commands has it, if so
  std::string_view help{};         ///< of the first of its name
  std::string_view labels{};       ///< with commas between; empty: none
  std::string_view label_value{};  ///< of the one label that a number of the node may have
  bool is_truth = false;           ///< JSON has it as true or false
  Told (*read)(const Reading&) = nullptr;                     ///< null: a list
  void (*write)(MetricLines&, const NodeNumbers&) = nullptr;  ///< null: its sample is the line

  /// It is told with this label, beside others of its name.
  NodeNumber& with(std::string_view label, std::string_view value) {
    labels = label;
    label_value = value;
    return *this;
  }
  NodeNumber& truth() {
    is_truth = true;
    return *this;
  }
  /// Its line in metrics has a label that is told beside it.
  NodeNumber& lines(std::string_view label, void (*written)(MetricLines&, const NodeNumbers&)) {
    labels = label;
    write = written;
    return *this;
  }
};

/// In the order in which they are told; those of one name stand together.
[[nodiscard]] std::span<const NodeNumber> node_numbers();

[[nodiscard]] std::string metric_name(const NodeNumber& number);

/// Requires: it is read.
[[nodiscard]] wire::Sample sample_of(const NodeNumber& number, std::uint64_t value);

}  // namespace espalier::node
