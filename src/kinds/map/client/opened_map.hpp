// SPDX-License-Identifier: Apache-2.0
// Parses a node's answer to creating or opening a map. The bytes are untrusted: every field is
// validated.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "channel/rings/remote_pipeline.hpp"
#include "espalier/error.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/map_forms.hpp"
#include "wire/message.hpp"

namespace espalier::client {

struct OpenedMap {
  std::uint32_t id = 0;
  wire::MapShape shape{};
  std::optional<wire::ShardMap> shard;  // nothing: the node has the whole map
  std::uint64_t durability = 0;         // encoded as in map_calls::Opened
  std::string group{};                  // name of its group; empty: none

  [[nodiscard]] MapOptions options() const { return tree::options_of(shape, group, durability); }

  /// Errors: corrupt (detail for an invalid shard map: 100 + its wire::ShardFault).
  static Result<OpenedMap> read(const Reply& answer);
};

/// Opens a map by name at a node, and waits. `knows_shards`: if false, a shard is refused.
/// Errors: not_found, wrong_kind, unsupported (a shard, or an older node), corrupt,
/// connection_lost.
Result<OpenedMap> open_map_by(RemoteRequests& requests, std::string_view name, bool knows_shards);

}  // namespace espalier::client
