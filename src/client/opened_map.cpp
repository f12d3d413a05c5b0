// SPDX-License-Identifier: Apache-2.0
#include "client/opened_map.hpp"

#include <cstring>
#include <utility>

namespace espalier::client {
namespace {

constexpr std::uint32_t kFaults = 100;  // details from here on are those of shard maps

}  // namespace

Result<OpenedMap> OpenedMap::read(const Reply& reply) {
  OpenedMap opened;
  std::string_view payload = reply.payload;
  if (payload.size() < sizeof opened.shape) return fail(Code::corrupt);
  std::memcpy(&opened.shape, payload.data(), sizeof opened.shape);
  payload.remove_prefix(sizeof opened.shape);
  opened.id = static_cast<std::uint32_t>(reply.header.version);
  if (payload.empty()) return opened;
  auto shard = wire::read_shard_map(payload, opened.shape.key_bytes_max);
  if (!shard) return fail(Code::corrupt, kFaults + static_cast<std::uint32_t>(shard.error()));
  opened.shard = std::move(*shard);
  return opened;
}

Result<OpenedMap> open_map_by(RemoteRequests& requests, std::string_view name, bool knows_shards) {
  Outgoing open;
  open.offload = wire::OffloadId::map_open;
  open.key = name;
  open.argument = knows_shards ? 1 : 0;
  const auto reply = requests.call(open);
  if (!reply) return std::unexpected(reply.error());
  return OpenedMap::read(*reply);
}

}  // namespace espalier::client
