// SPDX-License-Identifier: Apache-2.0
// The configured peers of a node, for its schedulers.
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

/// The factories of links to these. Contacts no peer yet; but an unreadable secret file is reported
/// now, not when the peer is first missed: `mistake`, if not null, receives the description.
/// Errors: those of KnownSecret::read_file; invalid_argument (no address). `messages`: the budget
/// of messages from peers; outlives the links. `silence_ns`: NodeOptions::peer_silence_ns.
[[nodiscard]] Result<std::vector<offload::NodePeers::Peer>> links_to_peers(
    std::span<const PeerConfig> peers, rings::MessageBudget& messages, std::uint64_t silence_ns,
    std::string* mistake);

}  // namespace espalier::node
