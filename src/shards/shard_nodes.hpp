// SPDX-License-Identifier: Apache-2.0
// The shards of one map, as one shard map tells: of each the map on its node, opened when it is
// first needed. Whoever finds that the shard map is out of date makes another of these
// (sharded_map.hpp); calls under way keep the one that they began with.
//
// Invariants
// 1. A shard is used only if its node tells the same shard map (uid, borders, addresses), and that
//    the shard is its own: so no node can stand for another, nor one for two.
// 2. Maps stay where they are as long as this lives.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/client/remote_map.hpp"
#include "shards/peer_sessions.hpp"

namespace espalier::client {

/// An error of a shard's, which tells whose it was: that a node cannot be reached is said with the
/// number of its shard.
[[nodiscard]] Error error_of_shard(Error error, std::size_t shard);

/// Whether an error says that nothing was done and the shard map may be out of date.
[[nodiscard]] bool is_outdated(const Error& error);

class ShardNodes {
 public:
  /// `opened`: what the node of `sessions` told, which has the own shard; it is a shard.
  ShardNodes(std::string name, const OpenedMap& opened, std::uint64_t node_id,
             std::shared_ptr<RemoteSessions> sessions, PeerSessions& peers);

  [[nodiscard]] const wire::ShardMap& map() const { return map_; }
  [[nodiscard]] const wire::MapShape& shape() const { return shape_; }
  /// The map of a shard. Cost: two loads, if it was opened. Errors: connection_lost (its node
  /// cannot be reached; detail: 1 + the shard), not_found, wrong_shard (it has another's), corrupt
  /// (it tells other things of the same map), unsupported.
  Result<RemoteMap*> shard(std::size_t number);
  /// The sessions with the node of a shard. Errors: as PeerSessions::of.
  Result<std::shared_ptr<RemoteSessions>> sessions(std::size_t number);

 private:
  struct Slot {
    std::mutex mutex;  // held while its node is asked
    std::unique_ptr<RemoteMap> map;
    std::atomic<RemoteMap*> opened{nullptr};
  };

  Result<std::unique_ptr<RemoteMap>> open(std::size_t number);

  const std::string name_;
  const wire::MapShape shape_;
  const wire::ShardMap map_;
  const std::shared_ptr<RemoteSessions> own_;
  PeerSessions& peers_;
  std::vector<Slot> slots_;
};

}  // namespace espalier::client
