// SPDX-License-Identifier: Apache-2.0
// What a node answers to who makes or opens a map, as a client reads it: the bytes are the node's,
// and none of them is believed before it was looked at.
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
  std::optional<wire::ShardMap> shard;  // nothing: the whole map lies there
  std::uint64_t durability = 0;         // as map_calls::Opened has it
  std::string group{};                  // its name; empty: it names none

  [[nodiscard]] MapOptions options() const { return tree::options_of(shape, group, durability); }

  /// Errors: corrupt (detail, of a shard map that is none: 100 + its wire::ShardFault).
  static Result<OpenedMap> read(const Reply& answer);
};

/// Asks a node for a map by its name, and waits. `knows_shards`: else a shard is refused.
/// Errors: not_found, wrong_kind, unsupported (a shard, or an older node), corrupt,
/// connection_lost.
Result<OpenedMap> open_map_by(RemoteRequests& requests, std::string_view name, bool knows_shards);

}  // namespace espalier::client
