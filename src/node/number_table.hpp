// SPDX-License-Identifier: Apache-2.0
// Where the rows of the table of numbers are added (node_number.hpp).
//
// Thread: one.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "node/node_number.hpp"

namespace espalier::node {

/// Where rows are added. Each is good until the next one comes.
class NumberTable {
 public:
  template <class Read>
  NodeNumber& counter(std::string_view name, std::string_view json, std::string_view help, Read) {
    return add({.name = name, .type = "counter", .json = json, .help = help, .read = reads<Read>});
  }
  template <class Read>
  NodeNumber& gauge(std::string_view name, std::string_view json, std::string_view help, Read) {
    return add({.name = name, .type = "gauge", .json = json, .help = help, .read = reads<Read>});
  }
  void list(std::string_view name, std::string_view type, std::string_view labels,
            std::string_view help, void (*write)(MetricLines&, const NodeNumbers&)) {
    add({.name = name, .type = type, .help = help, .labels = labels, .write = write});
  }
  [[nodiscard]] std::vector<NodeNumber> take() { return std::move(rows_); }

 private:
  template <class Read>
  static Told reads(const Reading& reading) {
    return Read{}(reading);
  }
  NodeNumber& add(const NodeNumber& row) { return rows_.emplace_back(row); }

  std::vector<NodeNumber> rows_;
};

/// Those of objects and of peers, which are all lists.
void add_object_numbers(NumberTable& table);

}  // namespace espalier::node
