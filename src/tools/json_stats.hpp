// SPDX-License-Identifier: Apache-2.0
// The numbers of a map as JSON, named alike by all commands that tell them.
#pragma once

#include <nlohmann/json.hpp>

#include "espalier/types.hpp"
#include "tools/json_record.hpp"
#include "tree/write/holders.hpp"

namespace espalier::tools {

/// Sets a member of `object` for each number.
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

/// One that keeps memory from being free.
[[nodiscard]] inline nlohmann::ordered_json holder_json(const tree::Holder& holder) {
  nlohmann::ordered_json object;
  object["kind"] = tree::name_of(holder.kind);
  set_bytes(object, "owner", holder.owner);
  if (holder.kind == tree::Holder::Kind::snapshot) set_bytes(object, "map", holder.map);
  object["since"] = holder.since;
  object["held_bytes"] = holder.bytes;
  return object;
}

}  // namespace espalier::tools
