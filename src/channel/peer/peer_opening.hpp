// SPDX-License-Identifier: Apache-2.0
// Reaching another node: a session with rings for calls, and beside it a queue pair for the memory
// that the peer lets this session use. Both shake hands, which takes as long as the peer makes it
// take and at most the times of the options; so it is done on a thread aside.
//
// Thread: any; what is opened belongs to one thread.
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
  std::unique_ptr<client::SideLink> memory;  ///< null: the peer lets nobody write its memory
  bool memory_may_come = false;              ///< or not now, for it has no room
};

/// A fabric in which time is its own, and nothing runs aside but by it.
struct PeerFabric {
  /// An endpoint for one pair. Errors: those of fabric::open_for_connecting.
  std::function<Result<fabric::Connecting>()> endpoint;
  /// Runs what waits. Whoever destroys the link sees to it that it has ended by then. Errors:
  /// std::system_error, and it has run nothing.
  std::function<void(std::function<void()> work)> aside;
  std::function<std::uint64_t()> now_ns;
  std::uint64_t pair_timeout_ns = fabric::QueuePairOptions{}.timeout_ns;
};

struct PeerOptions {
  fabric::FabricAddress address;
  wire::LinkWay way = wire::LinkWay::write;
  /// Where the name and secret stand by which it comes, read at each try; empty: where
  /// ESPALIER_SECRET_FILE says, and without that it comes without a proof.
  std::string secret_file;
  /// How long one try to reach the peer takes at most.
  std::uint64_t timeout_ns = 1'000'000'000;
  /// A peer of which something is awaited, and that answers nothing for so long, though it is asked
  /// whether it is there, is given up.
  std::uint64_t silence_ns = 3'000'000'000;
  /// A call that is not answered for so long is given up, and so is a link whose oldest post has
  /// not ended after it, though the peer is there.
  std::uint64_t answer_ns = 30'000'000'000;
  /// Between two tries; after each in vain twice as long, up to the second.
  std::uint64_t pause_ns = 50'000'000;
  std::uint64_t pause_max_ns = 1'000'000'000;
  /// Of which what the peer sends is gathered; null: there is no limit. Outlives the link.
  rings::MessageBudget* budget = nullptr;
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;  ///< of silences, answers and pauses
  /// Null: the fabric of the address.
  std::shared_ptr<const PeerFabric> fabric = nullptr;
};

/// `on_lost`: FabricConnectionOptions::on_lost.
/// Errors: as FabricConnection::open and SideLink::open: system (ECONNREFUSED, ETIMEDOUT), corrupt,
/// too_many_participants, not_permitted; those of KnownSecret::read_file.
Result<OpenedPeer> open_peer(const PeerOptions& options, std::function<void()> on_lost);
/// Opens the pair for memory of a session that has none. Errors: those of SideLink::open.
Result<std::unique_ptr<client::SideLink>> open_memory(const PeerOptions& options,
                                                      client::FabricConnection& connection);
/// Whether there may be a pair in this session at another time, though there was none this time:
/// the peer had no room, or did not answer, or there was no memory here.
[[nodiscard]] bool may_come_later(const Error& refusal);

}  // namespace espalier::peer
