// SPDX-License-Identifier: Apache-2.0
#include "client/remote_store.hpp"

#include <utility>

#include "base/until_fork.hpp"
#include "catalog/calls.hpp"
#include "catalog/catalog.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/client/datagram_caller.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/client/remote_map.hpp"
#include "kinds/map/map_forms.hpp"
#include "kinds/table/client/remote_tables.hpp"
#include "shards/peer_sessions.hpp"
#include "shards/sharded_map.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

object_calls::Drop dropping(std::string_view name) {
  return object_calls::drop(name, ObjectKind::map);
}

}  // namespace

Result<std::unique_ptr<StoreImpl>> RemoteStore::connect(const NodeAddress& address,
                                                        const StoreOptions& options) {
  // Checked whether a node listens there or not.
  if (options.access == Access::in_network && !sends_packets(address)) {
    return fail(Code::unsupported);
  }
  auto sessions = base::make_shared_until_fork<RemoteSessions>(address, options);
  auto store = std::make_unique<RemoteStore>(sessions, options);  // which ends them on failure
  // Reports an unreachable address now, and a node that cannot be read.
  const auto session = RemoteLease::take(sessions);
  if (!session) return std::unexpected(session.error());
  if (sessions->asks_by_datagrams()) {
    auto& datagrams = (*session)->parts.of<DatagramCaller>();
    const auto opened = datagrams.open((*session)->requests, (*session)->rings->connection());
    if (!opened) return std::unexpected(opened.error());
  }
  if (sessions->reads_alone()) {
    const auto reads = (*session)->rings->connection().open_beside(wire::LinkWay::reads);
    if (!reads) return std::unexpected(reads.error());
  }
  return store;
}

RemoteStore::RemoteStore(std::shared_ptr<RemoteSessions> sessions, const StoreOptions& options)
    : sessions_(std::move(sessions)), peers_(base::make_shared_until_fork<PeerSessions>(options)) {}

RemoteStore::~RemoteStore() {
  sessions_->close();
  peers_->close();
}

tree::WalkTraffic RemoteStore::read_traffic() const {
  tree::WalkTraffic sum = sessions_->traffic().sum();
  sum += peers_->traffic();
  return sum;
}

// Handles are raw pointers and stay valid, so an opened map is kept, even if one of the same name
// is created later.
Result<MapImpl*> RemoteStore::keep(const wire::CallMessage& request) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  try {
    return keep(**session, request);
  } catch (...) {  // no memory for the node's new map: undo it
    if (request.offload == map_calls::Create::kCall.id) {
      static_cast<void>(ask((*session)->requests, dropping(request.key)));
    }
    throw;
  }
}

// Throws std::bad_alloc only once the node has answered: the message is short.
Result<MapImpl*> RemoteStore::keep(RemoteSession& session, const wire::CallMessage& request) {
  const std::string_view name = request.key;
  const auto reply = session.requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  const auto opened = OpenedMap::read(*reply);
  if (!opened) return std::unexpected(opened.error());
  if (opened->shard) return keep_sharded(session, name, *opened);
  const std::uint64_t node = session.rings->connection().node_id();
  const std::lock_guard lock(mutex_);
  RemoteMap*& known = by_name_[std::string(name)];
  if (known == nullptr || !known->is(node, opened->id)) {
    auto map = std::make_unique<RemoteMap>(sessions_, std::string(name), node, *opened);
    RemoteMap* const made = map.get();
    maps_.push_back(std::move(map));
    known = made;
  }
  return known;
}

// The handle of an older one adapts by itself, but may have other options.
MapImpl* RemoteStore::keep_sharded(RemoteSession& session, std::string_view name,
                                   const OpenedMap& opened) {
  const std::lock_guard lock(mutex_);
  ShardedMap*& known = sharded_by_name_[std::string(name)];
  if (known == nullptr || known->nodes()->map().uid != opened.shard->uid) {
    auto map = std::make_unique<ShardedMap>(
        std::string(name), opened, session.rings->connection().node_id(), sessions_, peers_);
    ShardedMap* const made = map.get();
    maps_.push_back(std::move(map));
    known = made;
  }
  return known;
}

Result<MapImpl*> RemoteStore::create_map(std::string_view name, const MapOptions& options) {
  const bool good =
      catalog::Catalog::is_name(name) && wire::is_group_of(options.group, options.versions);
  if (!good) return fail(Code::invalid_argument);
  const wire::RequestMessage<map_calls::Create> create(
      {name, tree::shape_of(options), wire::number_of(options.durability), options.group});
  return keep(create.get());
}

Result<MapImpl*> RemoteStore::open_map(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  const wire::RequestMessage<map_calls::Open> open({name, 1});  // never a shard for the map
  return keep(open.get());
}

Result<void> RemoteStore::drop_map(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  RemoteRequests& requests = (*session)->requests;
  const auto opened = open_map_by(requests, name, true);
  if (!opened) return std::unexpected(opened.error());
  const auto others = opened->shard ? drop_others(name, *opened->shard) : Result<void>();
  const auto dropped = ask(requests, dropping(name));
  if (!dropped) return std::unexpected(dropped.error());
  return others;
}

// Drops all shards of a map that can be dropped: a node that is down keeps its shard, which can be
// dropped there later. A node with a different map of this name keeps it.
Result<void> RemoteStore::drop_others(std::string_view name, const wire::ShardMap& map) {
  Result<void> all;
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (i == map.own) continue;
    const auto drop = [&]() -> Result<void> {
      const auto sessions = peers_->of(map.shards[i].address);
      if (!sessions) return std::unexpected(sessions.error());
      const auto session = RemoteLease::take(*sessions);
      if (!session) return std::unexpected(session.error());
      const auto opened = open_map_by((*session)->requests, name, true);
      if (!opened && is_outdated(opened.error())) return {};
      if (!opened) return std::unexpected(opened.error());
      if (!opened->shard || opened->shard->uid != map.uid) return {};
      const auto dropped = ask((*session)->requests, dropping(name));
      if (!dropped) return std::unexpected(dropped.error());
      return {};
    };
    if (const auto dropped = drop(); !dropped && all) {
      all = std::unexpected(error_of_shard(dropped.error(), i));
    }
  }
  return all;
}

std::unique_ptr<TablesImpl> RemoteStore::tables() {
  return std::make_unique<RemoteTables>(sessions_);
}

Result<std::string> RemoteStore::node_numbers() {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Reply answer;
  const auto numbers = ask((*session)->requests, session_calls::NodeStats{}, answer);
  if (!numbers) return std::unexpected(numbers.error());
  return std::move(answer.payload);
}

}  // namespace espalier::client
