// SPDX-License-Identifier: Apache-2.0
// The peers of a node, as its configuration names them, for its schedulers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/peer_posts.hpp"
#include "espalier/error.hpp"
#include "node/config.hpp"
#include "rings/message_budget.hpp"

namespace espalier::node {

/// How links to these are made. Nobody is asked yet; but a file of a secret that cannot be read is
/// a mistake that should not wait until somebody misses the peer: `mistake`, if it is not null,
/// then says which it is. Errors: those of KnownSecret::read_file; invalid_argument (no address).
/// `messages`: of which what peers send is gathered; outlives the links.
/// `silence_ns`: NodeOptions::peer_silence_ns.
[[nodiscard]] Result<std::vector<offload::NodePeers::Peer>> links_to_peers(
    std::span<const PeerConfig> peers, rings::MessageBudget& messages, std::uint64_t silence_ns,
    std::string* mistake);

}  // namespace espalier::node
