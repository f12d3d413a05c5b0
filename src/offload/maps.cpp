// SPDX-License-Identifier: Apache-2.0
// Offloads on maps as a whole: making and opening them, their numbers, and snapshots. What takes
// memory or time by the size of a map runs on a helper.
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "base/exposed_epoch.hpp"
#include "offload/connection.hpp"
#include "offload/object_calls.hpp"
#include "offload/payload_reader.hpp"
#include "tree/map_forms.hpp"
#include "tree/write/map_object.hpp"
#include "tree/write/map_stats.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kKnowsShards = 1;  // the argument of who does not take a part for the whole

Next map_open(Call& call) {
  if (call.argument() > kKnowsShards) {
    return call.fail({Code::invalid_argument, 0, call.argument()});
  }
  const auto core = call.services().catalog().open<tree::MapCore>(call.key());
  if (!core) return call.fail(core.error());
  if ((*core)->shard == nullptr) return answer_object(call, (*core)->id, **core);
  if (call.argument() != kKnowsShards) {
    return call.fail({Code::unsupported, 0, (*core)->shard->own},
                     "the node has a shard of this map only, and this client knows no shards");
  }
  wire::ResponseHeader header{};
  header.version = (*core)->id;
  return call.answer(header, {(*core)->description(), wire::bytes_of(*(*core)->shard)});
}

/// What making a map came to, on the helper.
struct CreateState {
  std::optional<Result<std::shared_ptr<tree::MapCore>>> done;
};

Next map_create(Call& call) {
  CreateState& state = call.state<CreateState>();
  if (!state.done) {
    const auto shape = PayloadReader(call.payload()).take<wire::MapShape>();
    if (shape.versions > 1 || shape.key_bytes_max != 0) {
      return call.fail({Code::invalid_argument, 0, shape.versions});
    }
    tree::StoreCore& store = call.services().store;
    return call.helper([&store, &state, name = call.key(), options = tree::options_of(shape)] {
      state.done = tree::create_map(store, name, options);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_object(call, (**state.done)->id, ***state.done);
}

Next map_stats(Call& call) {
  HostMap& map = call.host_map();
  const wire::MapNumbers numbers = tree::numbers_of(tree::stats_of(*map.core, map.calls.slot));
  return call.answer({}, {base::bytes_of(numbers)});
}

// --- snapshots -----------------------------------------------------------------------------------

Next snapshot_open(Call& call) {
  HostMap& map = call.host_map();
  if (!map.keeps_versions()) return call.fail({Code::unsupported, 0, 0});
  std::uint64_t version = 0;
  const auto number = [&] {
    const base::ExposedEpoch exposed(map.calls.slot);
    version = map.released();
    return call.connection().hold(map.hold(version, call.connection().peer), call.account(),
                                  call.on_behalf());
  }();
  if (!number) return call.fail(number.error());
  wire::ResponseHeader header{};
  header.version = *number;
  header.read_version = version;
  return call.answer(header);
}

Next snapshot_close(Call& call) {
  const auto number = PayloadReader(call.payload()).take<std::uint64_t>();
  if (!call.connection().drop_snapshot(number)) return call.fail({Code::not_found, 0, 0});
  return call.answer({});
}

const Offload kMapOffloads[] = {
    {.id = wire::OffloadId::map_create,
     .name = "map_create",
     .format = "key: the map's name, 1 to 255 bytes; MapShape",
     .summary = "makes an empty map; answers its number and shape",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kObjectName.key_bytes_max,
                .payload_bytes_min = sizeof(wire::MapShape),
                .payload_bytes_max = sizeof(wire::MapShape)},
     .object = Names::by_name,
     .step = map_create},
    {.id = wire::OffloadId::map_open,
     .name = "map_open",
     .format = "key: the map's name; argument: 1 of a client that knows shards",
     .summary = "answers a map's number and shape, and of a shard its shard map",
     .right = Right::read,
     .limits = kObjectName,
     .object = Names::by_name,
     .step = map_open},
    {.id = wire::OffloadId::map_stats,
     .name = "map_stats",
     .format = "nothing",
     .summary = "answers a map's numbers",
     .right = Right::read,
     .limits = {.map = true},
     .step = map_stats},
    {.id = wire::OffloadId::snapshot_open,
     .name = "snapshot_open",
     .format = "nothing",
     .summary = "holds the newest version; answers the snapshot's number and its version",
     .right = Right::read,
     .limits = {.map = true},
     .step = snapshot_open},
    {.id = wire::OffloadId::snapshot_close,
     .name = "snapshot_close",
     .format = "8 bytes: the snapshot's number",
     .summary = "lets a snapshot go",
     .right = Right::read,
     .limits = {.payload_bytes_min = 8, .payload_bytes_max = 8},
     .step = snapshot_close},
};

}  // namespace

std::span<const Offload> map_offloads() { return kMapOffloads; }

}  // namespace espalier::offload
