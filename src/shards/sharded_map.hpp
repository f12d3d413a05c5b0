// SPDX-License-Identifier: Apache-2.0
// A map that is split by key range over several nodes, as one map: calls on one key go to the node
// of its shard; ranges across borders are read from a cut (sharded_cut.hpp); batches across borders
// are refused with crosses_shards.
//
// A node that has not the shard, or not any more, refuses and does nothing. Then the shard map is
// read again by the map's name, of the node by which the map was opened, and the call goes on by
// that, at most kTries times. What fails with connection_lost is never repeated.
//
// Invariants
// 1. A write is sent to one node at a time, and again only if that node has refused it.
// 2. Items that were delivered are never delivered again: a range that has delivered any is not
//    repeated.
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

  /// `home`: the sessions by which it was found first; `opened`: what its node told, a shard.
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

  /// By which calls that begin now are routed.
  [[nodiscard]] Nodes nodes() const;
  /// Those by a newer shard map than that of `known`; null: there is none. Cost: a round trip.
  Nodes newer_than(const Nodes& known);

 private:
  template <class Call>
  std::invoke_result_t<const Call&, const Nodes&> with_nodes(const Call& call);
  template <class Call>
  std::invoke_result_t<const Call&, RemoteMap&> on_shard_of(std::string_view key, const Call& call);
  Result<void> try_run(const Nodes& nodes, const Request& request, Handler& handler);
  /// Has `try_by(nodes, handler)` run it, and again where the shard map is out of date.
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
  std::mutex newer_;          // held while nodes are asked for a newer one
  Nodes nodes_;
};

}  // namespace espalier::client
