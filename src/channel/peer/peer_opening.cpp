// SPDX-License-Identifier: Apache-2.0
#include "channel/peer/peer_opening.hpp"

#include <utility>

#include "channel/rings/known_secret.hpp"
#include "channel/rings/node_address.hpp"

namespace espalier::peer {

Result<OpenedPeer> open_peer(const PeerOptions& options, std::function<void()> on_lost) {
  client::FabricConnectionOptions connecting;
  connecting.way = options.way;
  connecting.timeout_ns = options.timeout_ns;
  connecting.response_rings = 1;  // one thread asks
  connecting.on_lost = std::move(on_lost);
  auto secret = options.secret_file.empty() ? client::KnownSecret::of_process()
                                            : client::KnownSecret::read_file(options.secret_file);
  if (!secret) return std::unexpected(secret.error().error);
  connecting.secret = std::move(*secret);
  fabric::FabricAddress address = options.address;
  address.server_user = client::node_user_of_process();
  auto connection = client::FabricConnection::open(address, connecting);
  if (!connection) return std::unexpected(connection.error());
  auto rings = client::ThreadRings::open(*connection, options.budget);
  if (!rings) return std::unexpected(rings.error());
  OpenedPeer opened{std::move(*connection), std::move(*rings), nullptr};
  auto memory = opened.connection->open_beside(wire::LinkWay::writes);
  if (memory) {
    opened.memory = std::move(*memory);
  } else if (memory.error().code != Code::unsupported) {
    return std::unexpected(memory.error());
  }
  return opened;
}

}  // namespace espalier::peer
