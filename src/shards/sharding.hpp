// SPDX-License-Identifier: Apache-2.0
// Creates and inspects sharded maps: the implementation of `espalier shard`.
//
// Thread: any; connects, and blocks.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/node_address.hpp"
#include "espalier/types.hpp"
#include "kinds/map/format/shard.hpp"

namespace espalier::client {

/// Why a sharded map could not be created or inspected.
struct ShardFailure {
  std::size_t shard = 0;  ///< the one whose node it was
  Error error;
  std::string words;  ///< of the node, for people; may be empty
  /// Shards that were created before and could not be dropped again: their nodes still have them.
  std::vector<std::size_t> left;
};

/// Creates a shard on each node, or none: if one fails, the others are dropped again. Cost:
/// connects to each; a round trip or two. Errors: those of map_create, of connecting;
/// invalid_argument (detail: a wire::ShardFault, for wrong borders or addresses).
[[nodiscard]] std::expected<void, ShardFailure> create_shards(
    std::string_view name, const MapOptions& options, const std::vector<wire::Shard>& shards,
    const ConnectOptions& connecting = {});

/// A node's report of its shard.
struct ShardReport {
  wire::Shard shard;
  std::string high;  ///< below which its keys lie; empty: no end
  Result<MapStats> stats = fail(Code::invalid);
  /// It reports the same borders and addresses, and this shard as its own. Valid only if it
  /// answered.
  bool agrees = false;
};

struct ShardingReport {
  wire::ShardMap map;  ///< as the first node reported
  MapOptions options;
  std::vector<ShardReport> shards;
};

/// Asks the node at this address for the map's shards, and each of their nodes. Errors: of the
/// first node: as Store::connect and Store::open_map; wrong_kind (detail 0: the map is not
/// sharded).
[[nodiscard]] Result<ShardingReport> report_shards(const std::string& address,
                                                   std::string_view name,
                                                   const ConnectOptions& connecting = {});

}  // namespace espalier::client
