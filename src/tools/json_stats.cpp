// SPDX-License-Identifier: Apache-2.0
#include "tools/json_stats.hpp"

#include "node/node_number.hpp"

namespace espalier::tools {

nlohmann::ordered_json group_json(const node::NodeNumbers& numbers, std::string_view group) {
  nlohmann::ordered_json object;
  for (const node::NodeNumber& number : node::node_numbers()) {
    const std::size_t dot = number.json.find('.');
    if (dot == std::string_view::npos || number.json.substr(0, dot) != group) continue;
    const auto value = numbers.find(number.name, number.label_value);
    if (!value) continue;
    auto& member = object[std::string(number.json.substr(dot + 1))];
    if (number.is_truth) {
      member = *value != 0;
    } else {
      member = *value;
    }
  }
  return object;
}

}  // namespace espalier::tools
