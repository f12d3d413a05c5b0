// SPDX-License-Identifier: Apache-2.0
// A store on a node, by its sessions (remote_sessions.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "client/own_numbers.hpp"
#include "client/store_impl.hpp"
#include "kinds/map/client/opened_map.hpp"
#include "kinds/map/client/remote_map.hpp"
#include "shards/peer_sessions.hpp"
#include "shards/sharded_map.hpp"

namespace espalier::client {

class RemoteStore final : public StoreImpl {
 public:
  /// Connects to the node at this address. Errors: as connect_to().
  static Result<std::unique_ptr<StoreImpl>> connect(const NodeAddress& address,
                                                    const StoreOptions& options = {});
  RemoteStore(std::shared_ptr<RemoteSessions> sessions, const StoreOptions& options);
  ~RemoteStore() override;

  Result<MapImpl*> create_map(std::string_view name, const MapOptions& options) override;
  Result<MapImpl*> open_map(std::string_view name) override;
  Result<void> drop_map(std::string_view name) override;
  [[nodiscard]] const std::string& page_message() const override { return page_message_; }
  Result<std::uint64_t> memory_bytes() override { return fail(Code::unsupported); }
  Result<std::string> node_numbers() override;
  [[nodiscard]] std::unique_ptr<TablesImpl> tables() override;
  [[nodiscard]] std::shared_ptr<channel::Channel> channel() override { return sessions_; }
  [[nodiscard]] OwnNumbers* own_numbers() override { return &numbers_; }
  [[nodiscard]] tree::WalkTraffic read_traffic() const override;
  void trim() override {}

 private:
  /// The map that a request creates or opens by name.
  Result<MapImpl*> keep(const wire::CallMessage& request);
  Result<MapImpl*> keep(RemoteSession& session, const wire::CallMessage& request);
  Result<void> drop_others(std::string_view name, const wire::ShardMap& map);
  MapImpl* keep_sharded(RemoteSession& session, std::string_view name, const OpenedMap& opened);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::shared_ptr<PeerSessions> peers_;
  const std::string page_message_ = "memory of a node";
  OwnNumbers numbers_;
  std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<MapImpl>> maps_;
  std::map<std::string, RemoteMap*, std::less<>> by_name_;
  std::map<std::string, ShardedMap*, std::less<>> sharded_by_name_;
};

}  // namespace espalier::client
