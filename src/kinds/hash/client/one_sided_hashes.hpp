// SPDX-License-Identifier: Apache-2.0
// The hash maps that one thread reads by one-sided READs: one connection for READs, which all maps
// share, and for each map its gets, with a lease. Requests to the node use a lane of their own: a
// session has one pair for READs, so the pair for ordered maps belongs to another session.
//
// Thread: one at a time: that of the lane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "channel/one_sided/leased_readers.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/side_link.hpp"
#include "channel/rings/walk_options.hpp"
#include "kinds/hash/remote/hash_gets.hpp"

namespace espalier::client {

class OneSidedHashes {
 public:
  using Reader = place::HashGets;
  /// If the node offers no READs, or not of a map without versions, the rings answer.
  static constexpr bool kAskedForAlone = false;
  [[nodiscard]] static bool serves(Op op) { return op == Op::get; }

  /// `in_flight`: gets in flight for each map.
  OneSidedHashes(std::uint32_t in_flight, const WalkOptions& options);
  ~OneSidedHashes();
  OneSidedHashes(const OneSidedHashes&) = delete;
  OneSidedHashes& operator=(const OneSidedHashes&) = delete;

  /// Returns the gets of a hash map, with a connection and a lease; they are kept once made. A
  /// failure is cached for a while, and returned immediately: of a connection for all maps, because
  /// a handshake with an unresponsive node may take seconds; of a lease for all maps that have
  /// none; else for that map.
  /// Cost: the first time a handshake and a request. Requires: nothing pends at `requests`, and if
  /// memory runs out, no get is in flight: then all that was opened is closed.
  /// Errors: unsupported (the node offers no one-sided access, or the map has no versions),
  /// not_found, connection_lost, corrupt, system; out_of_memory (the session has no more leases, or
  /// this process has no memory).
  Result<place::HashGets*> open(RemoteRequests& requests, NodeConnection& connection,
                                std::uint32_t map);
  /// Requests from the node what the lease needs now, if anything, and likewise for the other maps.
  /// Closes maps whose leases the node does not renew, or for which there is no memory. Requires:
  /// nothing pends at `requests`; it is the lease of one of them.
  void renew(RemoteRequests& requests, place::LeaseGuard& lease);
  /// Sleeps until something may have arrived, for a millisecond at most.
  void wait();
  /// Closes the connection and all gets; open() makes others. Requires: none is in flight.
  void close();
  /// Closes a map that was dropped, and returns its lease. Requires: nothing pends at `requests`;
  /// no get is in flight.
  void forget(RemoteRequests& requests, std::uint32_t map);
  /// READs waited for, and bytes received, of all maps, including closed ones.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  Result<place::HashGets*> open_or_close(RemoteRequests& requests, NodeConnection& connection,
                                         std::uint32_t map);
  Result<place::HashGets*> open_anew(RemoteRequests& requests, NodeConnection& connection,
                                     std::uint32_t map);

  const std::uint32_t in_flight_;
  const WalkOptions options_;
  OpenFailures failures_;
  // Gets are destroyed before the link that they read by, and that before the port.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<SideLink> link_;
  // Belongs to a node, not to a link: a session that was fenced while nothing was read continues
  // with the whole cache.
  std::unique_ptr<place::BinCache> cache_;
  std::uint64_t cache_of_ = 0;          // the number of that node
  place::DirectoryBudget directories_;  // of what is read by this link
  std::unordered_map<std::uint32_t, std::unique_ptr<place::HashGets>> maps_;
  tree::WalkTraffic ended_;  // of those that are closed
};

/// Single gets of one thread by READs.
///
/// A get that READs cannot answer goes by the rings: the lease was lost, the pair has failed, the
/// get met changes too often, or READs cannot serve it.
/// Thread: one at a time.
class OneSidedHashCaller final : public LanePart {
 public:
  explicit OneSidedHashCaller(const WalkOptions& options) : hashes_(1, options) {}

  /// Executes a get of a map that `node` numbered, and completes it to the handler as any get.
  /// False: the get must go by the rings, and the handler was not called.
  bool run(RemoteSessions& sessions, channel::NodeNumber node, std::uint32_t map,
           const Request& request, Handler& handler);
  /// The traffic of all its gets.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  class Forward;

  void go_on(place::HashGets& gets);

  LeaseLane lane_;
  OneSidedHashes hashes_;
  std::uint64_t by_rings_ = 0;
};

}  // namespace espalier::client
