// SPDX-License-Identifier: Apache-2.0
// A map that is range-partitioned over several nodes, as one map: calls on one key go to the node
// of its shard; ranges across borders are read from a cut (sharded_cut.hpp); batches across borders
// are refused with crosses_shards.
//
// A node that does not own the shard (any more) refuses and does nothing. Then the client reloads
// the shard map by the map's name, from the node by which the map was opened, and retries, at most
// kTries times. Calls that fail with connection_lost are never repeated.
//
// Invariants
// 1. A write is sent to one node at a time, and again only if that node has refused it.
// 2. Items are never delivered twice: a range that has delivered any is not repeated.
//
// Thread: any, but for pipelines: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include "shards/shard_nodes.hpp"
#include "shards/sharded_cut.hpp"

namespace espalier::client {

class ShardedMap final : public MapImpl {
 public:
  static constexpr int kTries = 4;
  using Nodes = std::shared_ptr<ShardNodes>;

  /// `home`: the sessions by which it was first found; `opened`: its node's answer, a shard.
  ShardedMap(std::string name, const OpenedMap& opened, std::uint64_t node_id,
             std::shared_ptr<RemoteSessions> home, std::shared_ptr<PeerSessions> peers);

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
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight) override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const MapOptions& options() const override { return options_; }
  [[nodiscard]] std::uint32_t max_key_bytes() const override { return max_key_bytes_; }
  Result<MapStats> stats() override;
  Result<std::vector<std::string>> audit() override { return fail(Code::unsupported); }

  /// The routing of calls that begin now.
  [[nodiscard]] Nodes nodes() const;
  /// Routing by a newer shard map than that of `known`; null: there is none. Cost: a round trip.
  Nodes newer_than(const Nodes& known);

 private:
  template <class Call>
  std::invoke_result_t<const Call&, const Nodes&> with_nodes(const Call& call);
  template <class Call>
  std::invoke_result_t<const Call&, RemoteMap&> on_shard_of(std::string_view key, const Call& call);
  Result<void> try_run(const Nodes& nodes, const Request& request, Handler& handler);
  /// Calls `try_by(nodes, handler)`, and again if the shard map is outdated.
  template <class Try>
  Result<void> run_by(const Request& request, Handler& handler, const Try& try_by);
  Result<void> try_parts(const Nodes& nodes, const Request& scan, std::uint32_t parts,
                         Handler& handler);
  Result<void> try_scan(const Nodes& nodes, const Request& request, Handler& handler);
  Result<void> across(const Nodes& nodes, std::size_t first, std::size_t last,
                      const Request& request, Handler& handler);
  Result<std::uint64_t> try_count(const Nodes& nodes, std::string_view low, std::string_view high,
                                  bool estimate);

  const std::string name_;
  const MapOptions options_;
  const std::uint32_t max_key_bytes_;
  const std::shared_ptr<RemoteSessions> home_;
  const std::shared_ptr<PeerSessions> peers_;
  mutable std::mutex mutex_;  // guards nodes_
  std::mutex newer_;          // held while a newer one is requested
  Nodes nodes_;
};

}  // namespace espalier::client
