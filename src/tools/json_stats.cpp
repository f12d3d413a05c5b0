// SPDX-License-Identifier: Apache-2.0
#include "tools/json_stats.hpp"

#include <algorithm>
#include <span>
#include <string>

#include "node/node_number.hpp"
#include "tools/shown_samples.hpp"

namespace espalier::tools {
namespace {

/// A sample that has a member, and the member's name where it is not the sample's.
struct Member {
  std::string_view sample;
  const char* renamed = nullptr;
};
constexpr Member kMapMembers[] = {
    {"items"},       {"height"},        {"leaves"},          {"interior_nodes"}, {"node_bytes"},
    {"value_bytes"}, {"retired_bytes"}, {"snapshots"},       {"read_version"},   {"write_version"},
    {"log_merges"},   {"splits"},        {"redistributions"}, {"merges"},
    {"hints_admitted"}, {"hints_astray"}, {"hints_moved"},    {"hints_refused"},
    {"feed_followers"}, {"feed_entries"}, {"feed_gaps"}};
constexpr Member kTableMembers[] = {{"rows"},
                                    {"row_bytes"},
                                    {"pages"},
                                    {"memory_bytes"},
                                    {"queries_running"},
                                    {"queries_waiting"},
                                    {"queries_ended"},
                                    {"queries_failed"},
                                    {"queries_refused"},
                                    {"read_rows", "rows_read"},
                                    {"read_bytes", "bytes_read"},
                                    {"sent_rows", "rows_sent"},
                                    {"sent_bytes", "bytes_sent"}};
constexpr Member kSequencerMembers[] = {{"first"},      {"next"},     {"epoch"},
                                        {"sealed"},     {"requests"}, {"adds", "node_adds"},
                                        {"overwritten"}};

std::span<const Member> members_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::map: return kMapMembers;
    case ObjectKind::table: return kTableMembers;
    case ObjectKind::sequencer: return kSequencerMembers;
    default: return {};
  }
}

nlohmann::ordered_json& member_of(nlohmann::ordered_json& object, const Member& member) {
  for (const char* const part : {"feed", "queries"}) {
    const std::string prefix = std::string(part) + '_';
    if (!member.sample.starts_with(prefix)) continue;
    return object[part][std::string(member.sample.substr(prefix.size()))];
  }
  return object[member.renamed != nullptr ? member.renamed : std::string(member.sample)];
}

}  // namespace

bool has_members(ObjectKind kind) { return !members_of(kind).empty(); }

nlohmann::ordered_json members_json(const wire::SampledObject& object) {
  nlohmann::ordered_json json;
  set_bytes(json, std::string(name(object.kind)), object.name);
  const std::span<const Member> members = members_of(object.kind);
  for (const wire::Sample& sample : object.samples) {
    // What a node calls its samples may be anything: it gets no member that this does not know, and
    // none that another has.
    const auto known = std::ranges::find(members, sample.name, &Member::sample);
    if (known == members.end() || !sample.labels.empty() || !member_of(json, *known).is_null()) {
      json["samples"].push_back(sample_json(sample));
    } else if (sample.name == "sealed" || sample.name == "overwritten") {
      member_of(json, *known) = sample.value != 0;
    } else {
      member_of(json, *known) = sample.value;
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
