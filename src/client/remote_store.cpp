// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/catalog.hpp"
#include "client/remote.hpp"
#include "client/remote_sequencers.hpp"
#include "client/remote_tables.hpp"
#include "tree/map_forms.hpp"
#include "wire/object.hpp"

namespace espalier::client {
namespace {

Outgoing drop_request(std::string_view name) {
  Outgoing request;
  request.offload = wire::OffloadId::object_drop;
  request.key = name;
  request.argument = static_cast<std::uint32_t>(ObjectKind::map);
  return request;
}

}  // namespace

Result<std::unique_ptr<StoreImpl>> RemoteStore::connect(const NodeAddress& address,
                                                        const StoreOptions& options) {
  auto sessions = std::make_shared<RemoteSessions>(address, options);
  auto store = std::make_unique<RemoteStore>(sessions);  // which ends them if this fails
  // So that an address that leads nowhere is told now, and so is a node that cannot be read.
  const auto session = RemoteLease::take(sessions);
  if (!session) return std::unexpected(session.error());
  if (options.access == Access::in_network && !sends_packets(address)) {
    return fail(Code::unsupported);
  }
  if (options.access != Access::rpc) {
    const auto reads = (*session)->rings->connection().open_beside(wire::LinkWay::reads);
    if (!reads) return std::unexpected(reads.error());
  }
  return store;
}

RemoteStore::RemoteStore(std::shared_ptr<RemoteSessions> sessions)
    : sessions_(std::move(sessions)) {}

RemoteStore::~RemoteStore() { sessions_->close(); }

// Handles are raw pointers and stay valid, so a map that was opened is kept, even if one of the
// same name is made later.
Result<MapImpl*> RemoteStore::keep(std::string_view name, Outgoing request) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  request.key = name;
  try {
    return keep(**session, request);
  } catch (...) {  // no memory for what the node made: then it is to go again
    if (request.offload == wire::OffloadId::map_create) {
      static_cast<void>((*session)->requests.call(drop_request(name)));
    }
    throw;
  }
}

// Throws std::bad_alloc when the node has answered, and not before: the message is short.
Result<MapImpl*> RemoteStore::keep(RemoteSession& session, const Outgoing& request) {
  const std::string_view name = request.key;
  const auto reply = session.requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  wire::MapShape shape{};
  if (reply->payload.size() != sizeof shape) return fail(Code::corrupt);
  std::memcpy(&shape, reply->payload.data(), sizeof shape);
  const auto id = static_cast<std::uint32_t>(reply->header.version);
  const std::uint64_t node = session.rings->connection().node_id();
  const std::lock_guard lock(mutex_);
  RemoteMap*& known = by_name_[std::string(name)];
  if (known == nullptr || !known->is(node, id)) {
    maps_.push_back(std::make_unique<RemoteMap>(sessions_, std::string(name), node, id, shape));
    known = maps_.back().get();
  }
  return known;
}

Result<MapImpl*> RemoteStore::create_map(std::string_view name, const MapOptions& options) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::invalid_argument);
  const wire::MapShape shape = tree::shape_of(options);
  Outgoing request;
  request.offload = wire::OffloadId::map_create;
  request.payload = base::bytes_of(shape);
  return keep(name, request);
}

Result<MapImpl*> RemoteStore::open_map(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  Outgoing request;
  request.offload = wire::OffloadId::map_open;
  return keep(name, request);
}

Result<void> RemoteStore::drop_map(std::string_view name) {
  if (!catalog::Catalog::is_name(name)) return fail(Code::not_found);
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  const auto reply = (*session)->requests.call(drop_request(name));
  if (!reply) return std::unexpected(reply.error());
  return {};
}

std::unique_ptr<TablesImpl> RemoteStore::tables() {
  return std::make_unique<RemoteTables>(sessions_);
}

std::unique_ptr<SequencersImpl> RemoteStore::sequencers() {
  return std::make_unique<RemoteSequencers>(sessions_);
}

Result<std::string> RemoteStore::node_numbers() {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = wire::OffloadId::node_stats;
  auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  return std::move(reply->payload);
}

Result<std::vector<ObjectInfo>> RemoteStore::objects(ObjectKind kind) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = wire::OffloadId::object_list;
  request.argument = static_cast<std::uint32_t>(kind);
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  std::vector<ObjectInfo> objects;
  std::string_view left = reply->payload;
  Item item;
  while (take_item(left, item)) {
    wire::ObjectEntry entry{};
    if (item.value.size() < sizeof entry) return fail(Code::corrupt);
    std::memcpy(&entry, item.value.data(), sizeof entry);
    objects.push_back({static_cast<ObjectKind>(entry.kind),
                       static_cast<std::uint32_t>(item.version), std::string(item.key),
                       entry.entries, entry.memory_bytes});
  }
  return objects;
}

Result<std::uint64_t> RemoteStore::sequence(std::string_view name, std::uint32_t count) {
  const auto session = RemoteLease::take(sessions_);
  if (!session) return std::unexpected(session.error());
  Outgoing request;
  request.offload = wire::OffloadId::sequence;
  request.key = name;
  request.argument = count;
  const auto reply = (*session)->requests.call(request);
  if (!reply) return std::unexpected(reply.error());
  return reply->header.version;
}

}  // namespace espalier::client
