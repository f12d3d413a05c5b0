// SPDX-License-Identifier: Apache-2.0
// Offloads of maps that are split by key range over several nodes (docs/design/shards.md): making
// the shard that this node has, and holding releases for a cut over several.
#include <memory>
#include <optional>
#include <utility>

#include "base/bytes.hpp"
#include "offload/object_calls.hpp"
#include "offload/payload_reader.hpp"
#include "tree/map_forms.hpp"
#include "tree/write/map_object.hpp"
#include "wire/shard.hpp"

namespace espalier::offload {
namespace {

/// What making a shard came to, on the helper.
struct CreateState {
  std::optional<Result<std::shared_ptr<tree::MapCore>>> done;
};

Next refuse(Call& call, wire::ShardFault fault) {
  return call.fail({Code::invalid_argument, 0, static_cast<std::uint32_t>(fault)},
                   wire::text_of(fault));
}

Next shard_create(Call& call) {
  CreateState& state = call.state<CreateState>();
  if (!state.done) {
    PayloadReader reader(call.payload());
    const auto shape = reader.take<wire::MapShape>();
    if (shape.versions > 1 || shape.key_bytes_max != 0) {
      return call.fail({Code::invalid_argument, 0, shape.versions});
    }
    constexpr std::uint32_t kAnyKey = 65535;  // what this map's keys may be, making it tells
    auto shard = wire::read_shard_map(reader.rest(), kAnyKey);
    if (!shard) return refuse(call, shard.error());
    tree::StoreCore& store = call.services().store;
    return call.helper([&store, &state, name = call.key(), options = tree::options_of(shape),
                        shard = std::move(*shard)] {
      state.done = tree::create_shard(store, name, options, shard);
    });
  }
  if (!*state.done) return call.fail(state.done->error());
  return answer_object(call, (**state.done)->id, ***state.done);
}

Next release_hold(Call& call) {
  HostMap& map = call.host_map();
  if (!map.keeps_versions()) return call.fail({Code::unsupported, 0, 0});
  const std::uint64_t number = map.core->clock.hold();
  if (number == 0) return call.fail({Code::busy, 0, 0});
  wire::ResponseHeader header{};
  header.version = number;
  header.read_version = map.released();
  return call.answer(header);
}

Next release_confirm(Call& call) {
  HostMap& map = call.host_map();
  const auto number = PayloadReader(call.payload()).take<std::uint64_t>();
  // Before the hold ends, which lets the version rise.
  const std::uint64_t version = map.released();
  wire::ResponseHeader header{};
  if (map.core->clock.end_hold(number)) header.flags = wire::kFound;
  header.read_version = version;
  return call.answer(header);
}

const Offload kShardOffloads[] = {
    {.id = wire::OffloadId::shard_create,
     .name = "shard_create",
     .format = "key: the map's name, 1 to 255 bytes; MapShape, and the shard map",
     .summary = "makes an empty shard of a map that lies on several nodes; answers its number and "
                "shape",
     .right = Right::admin,
     .limits = {.key_bytes_min = 1,
                .key_bytes_max = kObjectName.key_bytes_max,
                .payload_bytes_min = sizeof(wire::MapShape) + sizeof(wire::ShardMapHeader),
                .payload_bytes_max = sizeof(wire::MapShape) + wire::kShardMapBytesMax},
     .object = Names::by_name,
     .step = shard_create},
    {.id = wire::OffloadId::release_hold,
     .name = "release_hold",
     .format = "nothing",
     .summary = "keeps the map's read version where it is, for 1 ms at most and once in 50 ms; "
                "answers the hold's number and the version",
     .right = Right::read,
     .limits = {.map = true},
     .step = release_hold},
    {.id = wire::OffloadId::release_confirm,
     .name = "release_confirm",
     .format = "8 bytes: the hold's number",
     .summary = "ends a hold; answers whether it stood until now, and the read version until then",
     .right = Right::read,
     .limits = {.map = true, .payload_bytes_min = 8, .payload_bytes_max = 8},
     .step = release_confirm},
};

}  // namespace

std::span<const Offload> shard_offloads() { return kShardOffloads; }

}  // namespace espalier::offload
