// SPDX-License-Identifier: Apache-2.0
// Sessions with the other nodes of maps that lie on several, by the addresses that shard maps name.
// They are connected when one is first needed, and end with their store.
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

  /// Those of an address. Cost: a lock; nothing is connected here.
  /// Errors: invalid_argument (it has no form of an address), unsupported (in_network: its packets
  /// meet no switch).
  Result<std::shared_ptr<RemoteSessions>> of(const std::string& address);
  void close();
  /// What one-sided reads took, of all of them.
  [[nodiscard]] tree::WalkTraffic traffic();

 private:
  const StoreOptions options_;
  std::mutex mutex_;  // guards by_address_
  std::map<std::string, std::shared_ptr<RemoteSessions>> by_address_;
};

}  // namespace espalier::client
