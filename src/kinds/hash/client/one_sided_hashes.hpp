// SPDX-License-Identifier: Apache-2.0
// The hash maps that one thread reads alone: a connection for its READs, which all of them share,
// and for each map its gets, with a lease. What is asked of the node goes by a lane of its own: a
// session has one pair for READs, so that of ordered maps is another session's.
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
  /// Where READs are not offered, or not of a map without versions, the rings answer.
  static constexpr bool kAskedForAlone = false;
  [[nodiscard]] static bool serves(Op op) { return op == Op::get; }

  /// `in_flight`: gets of each map.
  OneSidedHashes(std::uint32_t in_flight, const WalkOptions& options);
  ~OneSidedHashes();
  OneSidedHashes(const OneSidedHashes&) = delete;
  OneSidedHashes& operator=(const OneSidedHashes&) = delete;

  /// The gets of a hash map, with a connection and a lease; once made, they are kept. A failure is
  /// remembered for a while, and told again at once: of a connection for all maps, for a handshake
  /// with a node that does not answer may take seconds; of leases, for all maps that have none; of
  /// a map.
  /// Cost: the first time a handshake and a request. Requires: nothing pends at `requests`, and
  /// where there is no memory, no get is under way: all that was opened ends.
  /// Errors: unsupported (the node offers no one-sided access, or the map has no versions),
  /// not_found, connection_lost, corrupt, system; out_of_memory (the session has no more leases, or
  /// this process has no memory).
  Result<place::HashGets*> open(RemoteRequests& requests, NodeConnection& connection,
                                std::uint32_t map);
  /// Asks the node for what the lease needs now, if anything, and for those of the other maps. What
  /// the node does not renew, or there is no memory for, ends. Requires: nothing pends at
  /// `requests`; it is the lease of one of them.
  void renew(RemoteRequests& requests, place::LeaseGuard& lease);
  /// Lets a thread sleep until something may have come, for a millisecond at most.
  void wait();
  /// Ends the connection and all gets; open() makes others. Requires: none is under way.
  void close();
  /// Lets go of a map that was dropped, and gives its lease back. Requires: nothing pends at
  /// `requests`; no get is under way.
  void forget(RemoteRequests& requests, std::uint32_t map);
  /// READs that were waited for, and bytes that came, of all maps, those that are gone too.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  Result<place::HashGets*> open_or_close(RemoteRequests& requests, NodeConnection& connection,
                                         std::uint32_t map);
  Result<place::HashGets*> open_anew(RemoteRequests& requests, NodeConnection& connection,
                                     std::uint32_t map);

  const std::uint32_t in_flight_;
  const WalkOptions options_;
  OpenFailures failures_;
  // Gets end before the link that they read by, and that before the port.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<SideLink> link_;
  // Of one node, whichever link it is read by: a session that was fenced while nothing was read
  // comes back with all that it knew.
  std::unique_ptr<place::BinCache> cache_;
  std::uint64_t cache_of_ = 0;          // the number of that node
  place::DirectoryBudget directories_;  // of what is read by this link
  std::unordered_map<std::uint32_t, std::unique_ptr<place::HashGets>> maps_;
  tree::WalkTraffic ended_;  // of those that are gone
};

/// Gets of one thread, one by one.
///
/// What a READ could not answer goes by the rings: the lease was lost, the pair has failed, the get
/// met changes again and again, or nothing can be read so.
/// Thread: one at a time.
class OneSidedHashCaller final : public LanePart {
 public:
  explicit OneSidedHashCaller(const WalkOptions& options) : hashes_(1, options) {}

  /// Does a get of a map that `node` numbered, and tells the handler as any get does. False: it
  /// goes by the rings, and the handler was told nothing.
  bool run(RemoteSessions& sessions, channel::NodeNumber node, std::uint32_t map,
           const Request& request, Handler& handler);
  /// What all its gets took.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  class Forward;

  void go_on(place::HashGets& gets);

  LeaseLane lane_;
  OneSidedHashes hashes_;
  std::uint64_t by_rings_ = 0;
};

}  // namespace espalier::client
