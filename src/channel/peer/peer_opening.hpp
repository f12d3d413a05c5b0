// SPDX-License-Identifier: Apache-2.0
// Opens a session with another node: rings for calls, and beside them a queue pair for memory that
// the peer offers to this session. Both need handshakes, which may take as long as the options'
// timeouts; so opening runs on a thread of its own.
//
// Thread: any; the result belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/side_link.hpp"
#include "channel/rings/thread_rings.hpp"

namespace espalier::peer {

struct OpenedPeer {
  std::shared_ptr<client::FabricConnection> connection;
  std::unique_ptr<client::ThreadRings> rings;
  std::unique_ptr<client::SideLink> memory;  ///< null: the peer offers no memory
  bool memory_may_come = false;              ///< or none now, for lack of room
};

/// For tests: a fabric with its own time, on whose threads openings run.
struct PeerFabric {
  /// An endpoint for one pair. Errors: those of fabric::open_for_connecting.
  std::function<Result<fabric::Connecting>()> endpoint;
  /// Runs `work` on another thread. It must have ended before the link is destroyed. Errors:
  /// std::system_error, and then it has run nothing.
  std::function<void(std::function<void()> work)> aside;
  std::function<std::uint64_t()> now_ns;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
};

struct PeerOptions {
  fabric::FabricAddress address;
  wire::LinkWay way = wire::LinkWay::write;
  /// The file with the name and secret of this node, read at each try; empty: the file of
  /// ESPALIER_SECRET_FILE, and without that no proof is sent.
  std::string secret_file;
  /// Timeout of one try to reach the peer.
  std::uint64_t timeout_ns = 1'000'000'000;
  /// Keepalive timeout: a peer that owes an answer and sends nothing for so long, not even an
  /// answer to a probe, is given up.
  std::uint64_t silence_ns = 3'000'000'000;
  /// Timeout of a call, and of the oldest post on memory, though the peer is alive; the call is
  /// given up, the post ends the link.
  std::uint64_t answer_ns = 30'000'000'000;
  /// Pause between two tries; doubles after each failure, up to pause_max_ns.
  std::uint64_t pause_ns = 50'000'000;
  std::uint64_t pause_max_ns = 1'000'000'000;
  /// Bounds the memory of incoming messages; null: no bound. Must outlive the link.
  rings::MessageBudget* budget = nullptr;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;  ///< clock of timeouts and pauses
  /// Null: the fabric of `address`.
  std::shared_ptr<const PeerFabric> fabric = nullptr;
};

/// `on_lost`: FabricConnectionOptions::on_lost.
/// Errors: as FabricConnection::open and SideLink::open: system (ECONNREFUSED, ETIMEDOUT), corrupt,
/// too_many_participants, not_permitted; those of KnownSecret::read_file.
Result<OpenedPeer> open_peer(const PeerOptions& options, std::function<void()> on_lost);
/// Opens the pair for memory of a session that has none. Errors: those of SideLink::open.
Result<std::unique_ptr<client::SideLink>> open_memory(const PeerOptions& options,
                                                      client::FabricConnection& connection);
/// Whether this session may get a pair later, although this try failed: the peer had no room, or
/// did not answer, or memory ran out here.
[[nodiscard]] bool may_come_later(const Error& refusal);

}  // namespace espalier::peer
