// SPDX-License-Identifier: Apache-2.0
// Offloads on maps as a whole: making, opening, dropping and listing them, their numbers, and
// snapshots. What takes memory or time by the size of a map runs on the helper thread.
#include "base/bytes.hpp"
#include "offload/engine.hpp"
#include "offload/map_forms.hpp"
#include "tree/write/map_stats.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kNameBytesMax = tree::Catalog::kNameBytesMax;

wire::MapShape shape_of_map(const tree::MapCore& core) {
  return shape_of(core.options, core.geometry.key_bytes_max);
}

void answer_map(Engine& engine, Request& request, const tree::MapCore& core) {
  wire::ResponseHeader header{};
  header.version = core.id;
  const wire::MapShape shape = shape_of_map(core);
  engine.answer(request, header, {base::bytes_of(shape)});
}

void start_create(Engine& engine, Request& request) {
  const auto shape = PayloadReader(request.payload()).take<wire::MapShape>();
  if (shape.versions > 1 || shape.key_bytes_max != 0) {
    return engine.fail(request, {Code::invalid_argument, 0, shape.versions});
  }
  const MapOptions options = options_of(shape);
  RequestState& state = request.begin_state();
  tree::Catalog& catalog = engine.services().catalog;
  engine.hand_over(request, [&catalog, &request, &state, options] {
    const auto made = catalog.create(request.key(), options);
    if (!made) state.result = std::unexpected(made.error());
  });
}

void open_map(Engine& engine, Request& request) {
  const auto core = engine.services().catalog.open(request.key());
  if (!core) return engine.fail(request, core.error());
  answer_map(engine, request, **core);
}

void created(Engine& engine, Request& request) {
  if (!request.state->result) return engine.fail(request, request.state->result.error());
  open_map(engine, request);
}

void start_drop(Engine& engine, Request& request) {
  RequestState& state = request.begin_state();
  tree::Catalog& catalog = engine.services().catalog;
  engine.hand_over(request, [&catalog, &request, &state] {
    const auto dropped = catalog.drop(request.key());
    if (!dropped) state.result = std::unexpected(dropped.error());
  });
}

void dropped(Engine& engine, Request& request) {
  if (!request.state->result) return engine.fail(request, request.state->result.error());
  engine.answer(request, {});
}

// As the items of a scan: the name, and the map's number and shape.
void start_list(Engine& engine, Request& request) {
  std::string items;
  std::uint64_t count = 0;
  const tree::Catalog& catalog = engine.services().catalog;
  for (const std::string& name : catalog.names()) {
    const auto core = catalog.open(name);
    if (!core) continue;  // it was dropped just now
    const wire::MapShape shape = shape_of_map(**core);
    items += base::bytes_of(wire::item_header((*core)->id, name.size(), sizeof shape));
    items += name;
    items += base::bytes_of(shape);
    ++count;
  }
  if (!engine.response_fits(request, items.size())) return engine.on_writable(request);
  wire::ResponseHeader header{};
  header.version = count;
  engine.answer(request, header, {items});
}

void start_stats(Engine& engine, Request& request) {
  const wire::MapNumbers numbers =
      numbers_of(tree::stats_of(*request.map->core, request.map->calls.slot));
  engine.answer(request, {}, {base::bytes_of(numbers)});
}

// --- snapshots -----------------------------------------------------------------------------------

void start_snapshot(Engine& engine, Request& request) {
  const std::shared_ptr<tree::MapCore>& core = request.map->core;
  if (!core->options.versions) return engine.fail(request, {Code::unsupported, 0, 0});
  base::EpochSlot& slot = request.map->calls.slot;
  slot.enter();
  const std::uint64_t version = core->clock.released();
  auto snapshot = std::make_shared<HeldSnapshot>(core, version, request.connection->peer);
  slot.exit();
  const auto number = request.connection->hold(std::move(snapshot));
  if (!number) return engine.fail(request, number.error());
  wire::ResponseHeader header{};
  header.version = *number;
  header.read_version = version;
  engine.answer(request, header);
}

void start_close(Engine& engine, Request& request) {
  const auto number = PayloadReader(request.payload()).take<std::uint64_t>();
  if (!request.connection->drop_snapshot(number))
    return engine.fail(request, {Code::not_found, 0, 0});
  engine.answer(request, {});
}

constexpr Limits kName{.key_bytes_min = 1, .key_bytes_max = kNameBytesMax};

const Offload kOffloads[] = {
    {.id = wire::OffloadId::map_create,
     .name = "map_create",
     .format = "key: the map's name, 1 to 255 bytes; MapShape",
     .summary = "makes an empty map; answers its number and shape",
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kNameBytesMax,
                .payload_bytes_min = sizeof(wire::MapShape),
                .payload_bytes_max = sizeof(wire::MapShape)},
     .start = start_create,
     .resume = created},
    {.id = wire::OffloadId::map_open,
     .name = "map_open",
     .format = "key: the map's name",
     .summary = "answers a map's number and shape",
     .limits = kName,
     .start = open_map},
    {.id = wire::OffloadId::map_drop,
     .name = "map_drop",
     .format = "key: the map's name",
     .summary = "removes a map; its memory comes back when nobody reads it any more",
     .limits = kName,
     .start = start_drop,
     .resume = dropped},
    {.id = wire::OffloadId::map_list,
     .name = "map_list",
     .format = "nothing",
     .summary = "answers the names, numbers and shapes of all maps, as items",
     .limits = {},
     .start = start_list,
     .resume = start_list},
    {.id = wire::OffloadId::map_stats,
     .name = "map_stats",
     .format = "nothing",
     .summary = "answers a map's numbers",
     .limits = {.map = true},
     .start = start_stats},
    {.id = wire::OffloadId::snapshot_open,
     .name = "snapshot_open",
     .format = "nothing",
     .summary = "holds the newest version; answers the snapshot's number and its version",
     .limits = {.map = true},
     .start = start_snapshot},
    {.id = wire::OffloadId::snapshot_close,
     .name = "snapshot_close",
     .format = "8 bytes: the snapshot's number",
     .summary = "lets a snapshot go",
     .limits = {.payload_bytes_min = 8, .payload_bytes_max = 8},
     .start = start_close},
};

}  // namespace

std::span<const Offload> map_offloads() { return kOffloads; }

}  // namespace espalier::offload
