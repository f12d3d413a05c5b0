// SPDX-License-Identifier: Apache-2.0
// A map on a node. Where another node has come it is opened anew by its name; snapshots and
// pipelines end with their connection.
//
// Thread: any, but for pipelines: one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/map/client/map_impl.hpp"
#include "kinds/map/format/shard.hpp"

namespace espalier::client {

class RemoteSnapshot;
struct OpenedMap;

/// Which part of which map over several nodes a node is to have.
struct ShardIdentity {
  std::uint64_t uid = 0;
  std::uint32_t number = 0;
};

class RemoteMap final : public MapImpl {
 public:
  /// `shard`: it is a part; on a node that has started anew it is this part or none.
  RemoteMap(std::shared_ptr<RemoteSessions> sessions, std::string name, std::uint64_t node_id,
            const OpenedMap& opened, std::optional<ShardIdentity> shard = std::nullopt);

  Result<void> run(const Request& request, Handler& handler) override;
  Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) override;
  Result<bool> get(std::string_view key, std::string& value, Version& version) override;
  Result<Written> write_if(Op op, std::string_view key, std::string_view value,
                           const Condition& condition) override;
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount) override;
  Result<Written> write(const WriteBatch& batch) override;
  Result<std::uint64_t> scan(std::string_view low, std::string_view high, const ItemSink& sink,
                             ScanOptions options) override;
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;
  Result<std::uint64_t> count_estimate(std::string_view low, std::string_view high) override;
  Result<std::unique_ptr<SnapshotImpl>> snapshot() override;
  /// One with a lane of its own that holds nothing yet. Errors: as snapshot().
  Result<std::unique_ptr<RemoteSnapshot>> prepare_snapshot();
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight) override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const MapOptions& options() const override { return options_; }
  [[nodiscard]] std::uint32_t max_key_bytes() const override { return max_key_bytes_; }
  Result<MapStats> stats() override;
  Result<std::vector<std::string>> audit() override { return fail(Code::unsupported); }

  [[nodiscard]] bool is(std::uint64_t node_id, std::uint32_t id) const {
    return node_id_.load(std::memory_order_acquire) == node_id && id_.load() == id;
  }
  /// Refuses a batch that no node would take. Errors: as Map::write.
  [[nodiscard]] Result<void> check(const WriteBatch& batch) const;
  /// The map's number on the node that the session leads to.
  Result<Scope> scope(RemoteSession& session);
  Result<Scope> scope(RemoteRequests& requests, const NodeConnection& connection);

 private:
  Result<bool> walk_parts(const Request& scan, std::uint32_t parts, Handler& handler);
  template <class Request>
  Result<typename Request::Reply> ask_here(Request request);

  const std::shared_ptr<RemoteSessions> sessions_;
  const std::string name_;
  MapOptions options_;
  std::uint32_t max_key_bytes_;
  const std::optional<ShardIdentity> shard_;
  std::mutex mutex_;  // guards the two below while they change together
  std::atomic<std::uint64_t> node_id_;
  std::atomic<std::uint32_t> id_;
};

}  // namespace espalier::client
