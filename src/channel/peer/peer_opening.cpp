// SPDX-License-Identifier: Apache-2.0
#include "channel/peer/peer_opening.hpp"

#include <utility>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_address.hpp"

namespace espalier::peer {
namespace {

using client::FabricConnection;
using client::SideLink;

Result<std::shared_ptr<FabricConnection>> connect(const PeerOptions& options,
                                                  client::FabricConnectionOptions connecting) {
  if (options.fabric) {
    auto way = options.fabric->endpoint();
    if (!way) return std::unexpected(way.error());
    connecting.pair_timeout_ns = options.fabric->pair_timeout_ns;
    connecting.now_ns = options.fabric->now_ns;
    return FabricConnection::open(std::move(*way), connecting);
  }
  fabric::FabricAddress address = options.address;
  address.server_user = client::node_user_of_process();
  return FabricConnection::open(address, connecting);
}

// The peer reports this itself, and still serves calls.
bool has_no_room(const Error& refusal) {
  return refusal.code == Code::too_many_participants || refusal.code == Code::out_of_memory;
}

}  // namespace

bool may_come_later(const Error& refusal) {
  return has_no_room(refusal) || refusal.code == Code::system;
}

Result<std::unique_ptr<SideLink>> open_memory(const PeerOptions& options,
                                              FabricConnection& connection) {
  if (!options.fabric) return connection.open_beside(wire::LinkWay::writes);
  auto way = options.fabric->endpoint();
  if (!way) return std::unexpected(way.error());
  return connection.open_beside(wire::LinkWay::writes, std::move(*way));
}

Result<OpenedPeer> open_peer(const PeerOptions& options, std::function<void()> on_lost) {
  client::FabricConnectionOptions connecting;
  connecting.way = options.way;
  connecting.timeout_ns = options.timeout_ns;
  connecting.silence_ns = options.silence_ns / 3;
  connecting.response_rings = 1;  // one thread calls
  connecting.on_lost = std::move(on_lost);
  auto secret = options.secret_file.empty() ? client::KnownSecret::of_process()
                                            : client::KnownSecret::read_file(options.secret_file);
  if (!secret) return std::unexpected(secret.error().error);
  connecting.secret = std::move(*secret);
  auto connection = connect(options, std::move(connecting));
  if (!connection) return std::unexpected(connection.error());
  auto rings = client::ThreadRings::open(*connection, options.budget);
  if (!rings) return std::unexpected(rings.error());
  OpenedPeer opened{std::move(*connection), std::move(*rings), nullptr, false};
  auto memory = open_memory(options, *opened.connection);
  if (memory) {
    opened.memory = std::move(*memory);
  } else if (has_no_room(memory.error())) {
    opened.memory_may_come = true;
  } else if (memory.error().code != Code::unsupported) {
    return std::unexpected(memory.error());
  }
  return opened;
}

}  // namespace espalier::peer
