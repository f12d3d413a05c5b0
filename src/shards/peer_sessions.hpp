// SPDX-License-Identifier: Apache-2.0
// Sessions with the other nodes of sharded maps, by the addresses in shard maps. They are connected
// on first use, and end with their store.
//
// Thread: any.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "channel/rings/remote_sessions.hpp"

namespace espalier::client {

class PeerSessions {
 public:
  /// `options`: as the store reaches the node that it was connected to.
  explicit PeerSessions(const StoreOptions& options) : options_(options) {}
  ~PeerSessions() { close(); }
  PeerSessions(const PeerSessions&) = delete;
  PeerSessions& operator=(const PeerSessions&) = delete;

  /// The sessions of an address. Cost: a lock; does not connect.
  /// Errors: invalid_argument (it has no form of an address), unsupported (in_network: its packets
  /// meet no switch).
  Result<std::shared_ptr<RemoteSessions>> of(const std::string& address);
  void close();
  /// Statistics of one-sided reads, over all of them.
  [[nodiscard]] tree::WalkTraffic traffic();

 private:
  const StoreOptions options_;
  std::mutex mutex_;  // guards by_address_
  std::map<std::string, std::shared_ptr<RemoteSessions>> by_address_;
};

}  // namespace espalier::client
