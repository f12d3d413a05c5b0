// SPDX-License-Identifier: Apache-2.0
// Offloads on maps as a whole: making, opening, dropping and listing them, their numbers, and
// snapshots. What takes memory or time by the size of a map runs on the helper thread.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.hpp"
#include "offload/call.hpp"
#include "offload/connection.hpp"
#include "offload/payload_reader.hpp"
#include "tree/write/map_stats.hpp"
#include "wire/map_forms.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kNameBytesMax = tree::Catalog::kNameBytesMax;

wire::MapShape shape_of_map(const tree::MapCore& core) {
  return wire::shape_of(core.options, core.geometry.key_bytes_max);
}

Next answer_map(Call& call, const tree::MapCore& core) {
  wire::ResponseHeader header{};
  header.version = core.id;
  const wire::MapShape shape = shape_of_map(core);
  return call.answer(header, {base::bytes_of(shape)});
}

Next map_open(Call& call) {
  const auto core = call.services().catalog.open(call.key());
  if (!core) return call.fail(core.error());
  return answer_map(call, **core);
}

using Changed = Result<std::shared_ptr<tree::MapCore>>;

/// What making or dropping a map came to, on the helper.
struct ChangeState {
  std::optional<Changed> done;
};

Next map_create(Call& call) {
  ChangeState& state = call.state<ChangeState>();
  if (!state.done) {
    const auto shape = PayloadReader(call.payload()).take<wire::MapShape>();
    if (shape.versions > 1 || shape.key_bytes_max != 0) {
      return call.fail({Code::invalid_argument, 0, shape.versions});
    }
    tree::Catalog& catalog = call.services().catalog;
    return call.helper([&catalog, &state, name = call.key(), options = wire::options_of(shape)] {
      state.done = catalog.create(name, options);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_map(call, ***state.done);
}

Next map_drop(Call& call) {
  ChangeState& state = call.state<ChangeState>();
  if (!state.done) {
    tree::Catalog& catalog = call.services().catalog;
    return call.helper([&catalog, &state, name = call.key()] {
      const auto dropped = catalog.drop(name);
      // The map is freed here, if nothing else holds it.
      state.done = dropped ? Changed(nullptr) : std::unexpected(dropped.error());
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return call.answer({});
}

// As the items of a scan: the name, and the map's number and shape.
Next map_list(Call& call) {
  std::string items;
  std::uint64_t count = 0;
  const tree::Catalog& catalog = call.services().catalog;
  for (const std::string& name : catalog.names()) {
    const auto core = catalog.open(name);
    if (!core) continue;  // it was dropped just now
    const wire::MapShape shape = shape_of_map(**core);
    items += base::bytes_of(wire::item_header((*core)->id, name.size(), sizeof shape));
    items += name;
    items += base::bytes_of(shape);
    ++count;
  }
  if (!call.response_fits(items.size())) return call.writable();
  wire::ResponseHeader header{};
  header.version = count;
  return call.answer(header, {items});
}

Next map_stats(Call& call) {
  HostMap& map = call.host_map();
  const wire::MapNumbers numbers = wire::numbers_of(tree::stats_of(*map.core, map.calls.slot));
  return call.answer({}, {base::bytes_of(numbers)});
}

// --- snapshots -----------------------------------------------------------------------------------

Next snapshot_open(Call& call) {
  HostMap& map = call.host_map();
  if (!map.keeps_versions()) return call.fail({Code::unsupported, 0, 0});
  map.calls.slot.enter();
  const std::uint64_t version = map.released();
  auto snapshot = map.hold(version, call.connection().peer);
  map.calls.slot.exit();
  const auto number = call.connection().hold(std::move(snapshot));
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

constexpr Limits kName{.key_bytes_min = 1, .key_bytes_max = kNameBytesMax};

const Offload kOffloads[] = {
    {.id = wire::OffloadId::map_create,
     .name = "map_create",
     .format = "key: the map's name, 1 to 255 bytes; MapShape",
     .summary = "makes an empty map; answers its number and shape",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kNameBytesMax,
                .payload_bytes_min = sizeof(wire::MapShape),
                .payload_bytes_max = sizeof(wire::MapShape)},
     .step = map_create},
    {.id = wire::OffloadId::map_open,
     .name = "map_open",
     .format = "key: the map's name",
     .summary = "answers a map's number and shape",
     .right = Right::none,
     .limits = kName,
     .step = map_open},
    {.id = wire::OffloadId::map_drop,
     .name = "map_drop",
     .format = "key: the map's name",
     .summary = "removes a map; its memory comes back when nobody reads it any more",
     .right = Right::admin,
     .limits = kName,
     .step = map_drop},
    {.id = wire::OffloadId::map_list,
     .name = "map_list",
     .format = "nothing",
     .summary = "answers the names, numbers and shapes of all maps, as items",
     .right = Right::none,
     .limits = {},
     .step = map_list},
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

std::span<const Offload> map_offloads() { return kOffloads; }

}  // namespace espalier::offload
