// SPDX-License-Identifier: Apache-2.0
#include "tools/json_stats.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "node/node_number.hpp"

namespace espalier::tools {
namespace {

/// Members that are not called as their samples.
struct Renamed {
  std::string_view sample;
  const char* member;
};
constexpr Renamed kRenamed[] = {{"read_rows", "rows_read"},
                                {"read_bytes", "bytes_read"},
                                {"sent_rows", "rows_sent"},
                                {"sent_bytes", "bytes_sent"},
                                {"adds", "node_adds"}};

nlohmann::ordered_json& member_of(nlohmann::ordered_json& object, std::string_view sample) {
  for (const char* const part : {"feed", "queries"}) {
    const std::string prefix = std::string(part) + '_';
    if (sample.starts_with(prefix)) return object[part][std::string(sample.substr(prefix.size()))];
  }
  const auto renamed = std::ranges::find(kRenamed, sample, &Renamed::sample);
  return object[renamed == std::end(kRenamed) ? std::string(sample) : renamed->member];
}

}  // namespace

bool has_members(ObjectKind kind) {
  return kind == ObjectKind::map || kind == ObjectKind::table || kind == ObjectKind::sequencer;
}

nlohmann::ordered_json members_json(const wire::SampledObject& object) {
  nlohmann::ordered_json json;
  set_bytes(json, std::string(name(object.kind)), object.name);
  for (const wire::Sample& sample : object.samples) {
    auto& member = member_of(json, sample.name);
    if (sample.name == "sealed" || sample.name == "overwritten") {
      member = sample.value != 0;
    } else {
      member = sample.value;
    }
  }
  return json;
}

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
