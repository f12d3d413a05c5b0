// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/opened_map.hpp"

#include <utility>

#include "kinds/map/calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kFaults = 100;  // details from here on are those of shard maps

}  // namespace

Result<OpenedMap> OpenedMap::read(const Reply& answer) {
  const auto reply = wire::read_reply<map_calls::Opened>(answer.header, answer.payload);
  if (!reply) return fail(Code::corrupt);
  OpenedMap opened{reply->id, reply->shape, {}, reply->durability, std::string(reply->group())};
  if (reply->shard_map().empty()) return opened;
  auto shard = wire::read_shard_map(reply->shard_map(), opened.shape.key_bytes_max);
  if (!shard) return fail(Code::corrupt, kFaults + static_cast<std::uint32_t>(shard.error()));
  opened.shard = std::move(*shard);
  return opened;
}

Result<OpenedMap> open_map_by(RemoteRequests& requests, std::string_view name, bool knows_shards) {
  const wire::RequestMessage<map_calls::Open> open({name, knows_shards ? 1U : 0U});
  const auto reply = requests.call(open.get());
  if (!reply) return std::unexpected(reply.error());
  return OpenedMap::read(*reply);
}

}  // namespace espalier::client
