// SPDX-License-Identifier: Apache-2.0
// Statistics of a node and of its objects as JSON, with the same names in all commands.
#pragma once

#include <nlohmann/json.hpp>

#include "espalier/hash_map.hpp"
#include "espalier/types.hpp"
#include "memory/holders.hpp"
#include "node/metrics.hpp"
#include "tools/json_record.hpp"
#include "wire/node_numbers.hpp"

namespace espalier::tools {

/// The statistics of a node in this group ("helpers") of JSON, from the table of statistics. Null:
/// this node reports none of them.
[[nodiscard]] nlohmann::ordered_json group_json(const node::NodeNumbers& numbers,
                                                std::string_view group);

/// Whether objects of this kind have their traditional members in JSON; others are an array of
/// samples (object_json).
[[nodiscard]] bool has_members(ObjectKind kind);
/// Its name under its kind, and a member for each statistic. Samples without a member here, with
/// labels, or with a name used before are in an array `samples`, as in object_json. Safe for any
/// bytes. Requires: has_members(object.kind).
[[nodiscard]] nlohmann::ordered_json members_json(const wire::SampledObject& object);

/// Sets a member of `object` for each statistic.
inline void set_stats(nlohmann::ordered_json& object, const MapStats& stats) {
  object["items"] = stats.items;
  object["height"] = stats.height;
  object["leaves"] = stats.leaves;
  object["interior_nodes"] = stats.interior_nodes;
  object["node_bytes"] = stats.node_bytes;
  object["value_bytes"] = stats.value_bytes;
  object["retired_bytes"] = stats.retired_bytes;
  object["log_merges"] = stats.log_merges;
  object["splits"] = stats.splits;
  object["redistributions"] = stats.redistributions;
  object["merges"] = stats.merges;
  object["read_version"] = stats.read_version;
  object["write_version"] = stats.write_version;
  object["snapshots"] = stats.snapshots;
}

/// The same for a hash map.
inline void set_stats(nlohmann::ordered_json& object, const HashMapStats& stats) {
  object["items"] = stats.items;
  object["memory_bytes"] = stats.memory_bytes;
  object["segments"] = stats.segments;
  object["record_bytes"] = stats.record_bytes;
  object["long_bytes"] = stats.long_bytes;
  object["retired_bytes"] = stats.retired_bytes;
  object["splits"] = stats.splits;
  object["read_version"] = stats.read_version;
  object["write_version"] = stats.write_version;
  object["snapshots"] = stats.snapshots;
}

/// One principal's share of shared limits.
[[nodiscard]] inline nlohmann::ordered_json principal_json(const node::PrincipalNumbers& of) {
  nlohmann::ordered_json object;
  set_bytes(object, "principal", of.name);
  object["connections"] = of.connections;
  object["ring_bytes"] = of.ring_bytes;
  object["snapshots"] = of.snapshots;
  return object;
}

/// One holder of retired memory.
[[nodiscard]] inline nlohmann::ordered_json holder_json(const memory::Holder& holder) {
  nlohmann::ordered_json object;
  object["kind"] = memory::name_of(holder.kind);
  set_bytes(object, "owner", holder.owner);
  if (holder.kind == memory::Holder::Kind::snapshot) set_bytes(object, "map", holder.object);
  object["since"] = holder.since;
  object["held_bytes"] = holder.bytes;
  return object;
}

}  // namespace espalier::tools
