// SPDX-License-Identifier: Apache-2.0
// Options and numbers of a map in the form of the protocol, and back. What is read comes from the
// other side and is checked where it is used.
#pragma once

#include <cstdint>
#include <string_view>

#include "espalier/types.hpp"
#include "wire/message.hpp"
#include "wire/object.hpp"

namespace espalier::tree {

/// `key_bytes_max`: what the node found for these options; 0 where they are only asked for.
[[nodiscard]] inline wire::MapShape shape_of(const MapOptions& options,
                                             std::uint32_t key_bytes_max = 0) {
  wire::MapShape shape{};
  shape.snapshot_bytes_max = options.snapshot_bytes_max;
  shape.node_bytes = options.node_bytes;
  shape.log_bytes = options.log_bytes;
  shape.versions = options.versions ? 1 : 0;
  shape.group_bytes = static_cast<std::uint8_t>(options.group.size());
  shape.key_bytes_max = key_bytes_max;
  return shape;
}

/// `durability`: as a number of wire/object.hpp.
[[nodiscard]] inline MapOptions options_of(const wire::MapShape& shape, std::string_view group,
                                           std::uint64_t durability = 0) {
  MapOptions options;
  options.group = group;
  options.durability = wire::durability_of(durability);
  options.snapshot_bytes_max = shape.snapshot_bytes_max;
  options.node_bytes = shape.node_bytes;
  options.log_bytes = shape.log_bytes;
  options.versions = shape.versions != 0;
  return options;
}

[[nodiscard]] inline wire::MapNumbers numbers_of(const MapStats& stats) {
  wire::MapNumbers numbers{};
  numbers.items = stats.items;
  numbers.leaves = stats.leaves;
  numbers.interior_nodes = stats.interior_nodes;
  numbers.height = stats.height;
  numbers.node_bytes = stats.node_bytes;
  numbers.value_bytes = stats.value_bytes;
  numbers.retired_bytes = stats.retired_bytes;
  numbers.log_merges = stats.log_merges;
  numbers.splits = stats.splits;
  numbers.redistributions = stats.redistributions;
  numbers.merges = stats.merges;
  numbers.read_version = stats.read_version;
  numbers.write_version = stats.write_version;
  numbers.snapshots = stats.snapshots;
  return numbers;
}

[[nodiscard]] inline MapStats stats_of(const wire::MapNumbers& numbers) {
  MapStats stats;
  stats.items = numbers.items;
  stats.leaves = numbers.leaves;
  stats.interior_nodes = numbers.interior_nodes;
  stats.height = static_cast<std::uint32_t>(numbers.height);
  stats.node_bytes = numbers.node_bytes;
  stats.value_bytes = numbers.value_bytes;
  stats.retired_bytes = numbers.retired_bytes;
  stats.log_merges = numbers.log_merges;
  stats.splits = numbers.splits;
  stats.redistributions = numbers.redistributions;
  stats.merges = numbers.merges;
  stats.read_version = numbers.read_version;
  stats.write_version = numbers.write_version;
  stats.snapshots = numbers.snapshots;
  return stats;
}

}  // namespace espalier::tree
