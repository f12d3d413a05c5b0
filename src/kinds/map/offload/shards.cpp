// SPDX-License-Identifier: Apache-2.0
// Offloads of maps that are split by key range over several nodes (docs/design/shards.md): making
// the shard that this node has, and holding releases for a cut over several.
#include <memory>
#include <optional>
#include <utility>

#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_object.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

/// What making a shard came to, on the helper.
struct CreateShardState {
  std::optional<Result<std::shared_ptr<tree::MapCore>>> done;
};

Next refuse(Call& call, wire::ShardFault fault) {
  return call.fail({Code::invalid_argument, 0, static_cast<std::uint32_t>(fault)},
                   wire::text_of(fault));
}

Next create_shard(Call& call, const map_calls::CreateShard& asked) {
  CreateShardState& state = call.state<CreateShardState>();
  if (!state.done) {
    constexpr std::uint32_t kAnyKey = 65535;  // what this map's keys may be, making it tells
    auto shard = wire::read_shard_map(asked.shard_map, kAnyKey);
    if (!shard) return refuse(call, shard.error());
    tree::StoreCore& store = call.services().store;
    const MapOptions options = tree::options_of(asked.shape, {}, asked.durability);
    if (const auto words = call.why_not(options.durability)) {
      return call.fail({Code::unsupported, 0, 0}, *words);
    }
    return call.helper([&store, &state, name = asked.name, options, shard = std::move(*shard)] {
      state.done = tree::create_shard(store, name, options, shard);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer(call, tree::opened_of(***state.done));
}

Next hold_release(Call& call, const map_calls::HoldRelease&) {
  HostMap& map = host_map_of(call);
  if (!map.keeps_versions()) return call.fail({Code::unsupported, 0, 0});
  const std::uint64_t number = map.core->clock.hold();
  if (number == 0) return call.fail({Code::busy, 0, 0});
  return answer(call, map_calls::ReleaseHeld{number, map.released()});
}

Next confirm_release(Call& call, const map_calls::ConfirmRelease& asked) {
  HostMap& map = host_map_of(call);
  // Before the hold ends, which lets the version rise.
  const std::uint64_t version = map.released();
  return answer(call, map_calls::ReleaseConfirmed{map.core->clock.end_hold(asked.hold), version});
}

const Offload kShardOffloads[] = {
    serve_map<map_calls::CreateShard, create_shard>(),
    serve_map<map_calls::HoldRelease, hold_release>(),
    serve_map<map_calls::ConfirmRelease, confirm_release>(),
};

}  // namespace

std::span<const Offload> shard_offloads() { return kShardOffloads; }

}  // namespace espalier::offload
