// SPDX-License-Identifier: Apache-2.0
// The shards of one map according to one shard map: each shard's map on its node, opened on first
// use. A caller that finds the shard map outdated creates another of these (sharded_map.hpp); calls
// in progress keep theirs.
//
// Invariants
// 1. A shard is used only if its node reports the same shard map (uid, borders, addresses), and
//    that the shard is its own: so no node can stand in for another, nor one for two.
// 2. Maps stay in place while this lives.
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

/// Adds the shard's number to a shard's error, if its node cannot be reached.
[[nodiscard]] Error error_of_shard(Error error, std::size_t shard);

/// Whether an error means that nothing was done and the shard map may be outdated.
[[nodiscard]] bool is_outdated(const Error& error);

class ShardNodes {
 public:
  /// `opened`: the answer of the node of `sessions`, which has the own shard; it is a shard.
  ShardNodes(std::string name, const OpenedMap& opened, std::uint64_t node_id,
             std::shared_ptr<RemoteSessions> sessions, PeerSessions& peers);

  [[nodiscard]] const wire::ShardMap& map() const { return map_; }
  [[nodiscard]] const wire::MapShape& shape() const { return shape_; }
  /// The map of a shard. Cost: two loads, if already open. Errors: connection_lost (its node cannot
  /// be reached; detail: 1 + the shard), not_found, wrong_shard (it has another one), corrupt (it
  /// reports another shard map), unsupported.
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
