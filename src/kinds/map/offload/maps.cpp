// SPDX-License-Identifier: Apache-2.0
// Offloads on maps as a whole: making and opening them, their numbers, and snapshots. What takes
// memory or time by the size of a map runs on a helper.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/exposed_epoch.hpp"
#include "engine/connection.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/map_object.hpp"
#include "kinds/map/write/map_stats.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {
namespace {

Next open(Call& call, const map_calls::Open& asked) {
  const auto core = call.services().catalog().open<tree::MapCore>(asked.name);
  if (!core) return call.fail(core.error());
  map_calls::Opened opened = tree::opened_of(**core);
  if ((*core)->shard == nullptr) return answer(call, opened);
  if (asked.knows_shards == 0) {
    return call.fail({Code::unsupported, 0, (*core)->shard->own},
                     "the node has a shard of this map only, and this client knows no shards");
  }
  const std::string shard_map = wire::bytes_of(*(*core)->shard);
  opened.behind = shard_map;
  return answer(call, opened);
}

/// What making a map came to, on the helper.
struct CreateState {
  std::optional<Result<std::shared_ptr<tree::MapCore>>> done;
};

Next create_map(Call& call, const map_calls::Create& asked) {
  CreateState& state = call.state<CreateState>();
  if (!state.done) {
    const MapOptions options = tree::options_of(asked.shape, asked.group, asked.durability);
    tree::StoreCore& store = call.services().store;
    if (const auto words = call.why_not(options.durability)) {
      return call.fail({Code::unsupported, 0, 0}, *words);
    }
    if (!options.versions && call.is_durable(options.durability)) {
      return call.fail({Code::unsupported, 0, 0},
                       "maps of a node with a data folder keep versions, but those of durability "
                       "none: without them readers see what a crash can lose");
    }
    return call.helper([&store, &state, name = asked.name, options] {
      state.done = tree::create_map(store, name, options);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer(call, tree::opened_of(***state.done));
}

Next stats(Call& call, const map_calls::Stats&) {
  const HostMap& map = host_map_of(call);
  return answer(call, map_calls::Numbers{tree::numbers_of(tree::stats_of(*map.core))});
}

// --- snapshots -----------------------------------------------------------------------------------

Next open_snapshot(Call& call, const map_calls::OpenSnapshot&) {
  HostMap& map = host_map_of(call);
  if (!map.keeps_versions()) return call.fail({Code::unsupported, 0, 0});
  std::uint64_t version = 0;
  const auto number = [&] {
    const base::ExposedEpoch exposed(map.calls.slot);
    version = map.released();
    return HeldSnapshots::of(call.connection())
        .hold(map.hold(version, call.connection().peer), call.account(), call.on_behalf());
  }();
  if (!number) return call.fail(number.error());
  return answer(call, map_calls::SnapshotOpened{*number, version});
}

Next close_snapshot(Call& call, const map_calls::CloseSnapshot& asked) {
  if (!HeldSnapshots::of(call.connection()).drop(asked.number))
    return call.fail({Code::not_found, 0, 0});
  return answer(call, wire::Nothing{});
}

const Offload kMapOffloads[] = {
    serve_map<map_calls::Create, create_map>(),
    serve_map<map_calls::Open, open>(),
    serve_map<map_calls::Stats, stats>(),
    serve_map<map_calls::OpenSnapshot, open_snapshot>(),
    serve_map<map_calls::CloseSnapshot, close_snapshot>(),
};

}  // namespace

std::span<const Offload> map_offloads() { return kMapOffloads; }

}  // namespace espalier::offload
