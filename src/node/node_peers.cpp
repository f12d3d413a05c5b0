// SPDX-License-Identifier: Apache-2.0
#include "node/node_peers.hpp"

#include <utility>

#include "channel/peer/session_link.hpp"
#include "channel/rings/known_secret.hpp"

namespace espalier::node {

Result<std::vector<offload::NodePeers::Peer>> links_to_peers(std::span<const PeerConfig> peers,
                                                             rings::MessageBudget& messages,
                                                             std::uint64_t silence_ns,
                                                             std::string* mistake) {
  std::vector<offload::NodePeers::Peer> made;
  for (const PeerConfig& peer : peers) {
    auto address = fabric::parse(peer.address);
    if (!address) return std::unexpected(address.error());
    if (!peer.secret_file.empty()) {
      const auto secret = client::KnownSecret::read_file(peer.secret_file);
      if (!secret && mistake != nullptr) {
        *mistake = "peer " + peer.name + ": " + message(secret.error());
      }
      if (!secret) return std::unexpected(secret.error().error);
    }
    peer::PeerOptions options;
    options.address = std::move(*address);
    options.secret_file = peer.secret_file;
    options.budget = &messages;
    options.silence_ns = silence_ns;
    options.answer_ns = 10 * silence_ns;
    made.push_back({peer.name, [options](std::function<void()> wake) {
                      return std::make_unique<peer::SessionLink>(options, std::move(wake));
                    }});
  }
  return made;
}

}  // namespace espalier::node
