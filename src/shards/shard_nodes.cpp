// SPDX-License-Identifier: Apache-2.0
#include "shards/shard_nodes.hpp"

#include <cstring>
#include <utility>

namespace espalier::client {

Error error_of_shard(Error error, std::size_t shard) {
  const bool lost = error.code == Code::connection_lost;
  if (lost || error.code == Code::system) {
    const std::uint32_t packet = lost ? error.detail & 0xFFFF'0000 : 0;
    return {Code::connection_lost, 0, packet | static_cast<std::uint32_t>(shard + 1)};
  }
  return error;
}

bool is_outdated(const Error& error) {
  return error.code == Code::wrong_shard || error.code == Code::not_found ||
         error.code == Code::wrong_kind;
}

ShardNodes::ShardNodes(std::string name, const OpenedMap& opened, std::uint64_t node_id,
                       std::shared_ptr<RemoteSessions> sessions, PeerSessions& peers)
    : name_(std::move(name)),
      shape_(opened.shape),
      map_(*opened.shard),
      own_(std::move(sessions)),
      peers_(peers),
      slots_(map_.size()) {
  Slot& slot = slots_[map_.own];
  slot.map =
      std::make_unique<RemoteMap>(own_, name_, node_id, opened, ShardIdentity{map_.uid, map_.own});
  slot.opened.store(slot.map.get(), std::memory_order_release);
}

Result<std::shared_ptr<RemoteSessions>> ShardNodes::sessions(std::size_t number) {
  if (number == map_.own) return own_;
  return peers_.of(map_.shards[number].address);
}

Result<RemoteMap*> ShardNodes::shard(std::size_t number) {
  Slot& slot = slots_[number];
  if (RemoteMap* const map = slot.opened.load(std::memory_order_acquire)) [[likely]]
    return map;
  const std::lock_guard lock(slot.mutex);
  if (slot.map == nullptr) {
    auto map = open(number);
    if (!map) return std::unexpected(error_of_shard(map.error(), number));
    slot.map = std::move(*map);
    slot.opened.store(slot.map.get(), std::memory_order_release);
  }
  return slot.map.get();
}

Result<std::unique_ptr<RemoteMap>> ShardNodes::open(std::size_t number) {
  const auto with = sessions(number);
  if (!with) return std::unexpected(with.error());
  const auto session = RemoteLease::take(*with);
  if (!session) return std::unexpected(session.error());
  const auto opened = open_map_by((*session)->requests, name_, true);
  if (!opened) return std::unexpected(opened.error());
  const auto refuse = [number](Code code) {
    return fail(code, static_cast<std::uint32_t>(number));
  };
  if (!opened->shard || opened->shard->uid != map_.uid) return refuse(Code::wrong_shard);
  const bool same_shape = std::memcmp(&opened->shape, &shape_, sizeof shape_) == 0;
  if (!opened->shard->same(map_) || opened->shard->own != number || !same_shape) {
    return refuse(Code::corrupt);
  }
  return std::make_unique<RemoteMap>(*with, name_, (*session)->rings->connection().node_id(),
                                     *opened,
                                     ShardIdentity{map_.uid, static_cast<std::uint32_t>(number)});
}

}  // namespace espalier::client
