// SPDX-License-Identifier: Apache-2.0
#include "shards/peer_sessions.hpp"

#include "base/until_fork.hpp"

namespace espalier::client {

Result<std::shared_ptr<RemoteSessions>> PeerSessions::of(const std::string& address) {
  const std::lock_guard lock(mutex_);
  if (const auto known = by_address_.find(address); known != by_address_.end()) {
    return known->second;
  }
  const auto parsed = parse_node_address(address);
  if (!parsed) return std::unexpected(parsed.error());
  if (options_.access == Access::in_network && !sends_packets(*parsed)) {
    return fail(Code::unsupported);
  }
  auto sessions = base::make_shared_until_fork<RemoteSessions>(*parsed, options_);
  by_address_.emplace(address, sessions);
  return sessions;
}

void PeerSessions::close() {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, sessions] : by_address_) sessions->close();
}

tree::WalkTraffic PeerSessions::traffic() {
  const std::lock_guard lock(mutex_);
  tree::WalkTraffic sum;
  for (const auto& [address, sessions] : by_address_) {
    sum += sessions->traffic().sum();
  }
  return sum;
}

}  // namespace espalier::client
