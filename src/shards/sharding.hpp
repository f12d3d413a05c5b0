// SPDX-License-Identifier: Apache-2.0
// Making a map over several nodes, and looking at one: what `espalier shard` does.
//
// Thread: any; connects, and waits.
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

/// Why a map over several nodes could not be made or asked for.
struct ShardFailure {
  std::size_t shard = 0;  ///< the one whose node it was
  Error error;
  std::string words;  ///< of the node, for people; may be empty
  /// Shards that were made before and could not be dropped again: their nodes still have them.
  std::vector<std::size_t> left;
};

/// Makes a shard on each node, or none: what was made is dropped again where one fails.
/// Cost: connects to each; a round trip or two. Errors: those of map_create, of connecting;
/// invalid_argument (detail: a wire::ShardFault, where the borders or addresses are wrong).
[[nodiscard]] std::expected<void, ShardFailure> create_shards(
    std::string_view name, const MapOptions& options, const std::vector<wire::Shard>& shards,
    const ConnectOptions& connecting = {});

/// What a node says of its shard.
struct ShardReport {
  wire::Shard shard;
  std::string high;  ///< below which its keys lie; empty: no end
  Result<MapStats> stats = fail(Code::invalid);
  /// It tells the same borders and addresses, and that this shard is its own. Only if it answered.
  bool agrees = false;
};

struct ShardingReport {
  wire::ShardMap map;  ///< as the node told that was asked first
  MapOptions options;
  std::vector<ShardReport> shards;
};

/// Asks the node at this address for the map's shards, and each of their nodes.
/// Errors: of the node that is asked first: as Store::connect and Store::open_map; wrong_kind
/// (detail 0: the map lies on that node alone).
[[nodiscard]] Result<ShardingReport> report_shards(const std::string& address,
                                                   std::string_view name,
                                                   const ConnectOptions& connecting = {});

}  // namespace espalier::client
