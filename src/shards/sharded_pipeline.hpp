// SPDX-License-Identifier: Apache-2.0
// Many operations in flight over the shards of a map: a pipeline on each shard, opened at the first
// request for it.
//
// Requests that one shard cannot complete (a range across borders, a floor that lies further left,
// a moved shard) are completed afterwards by a call of the map, one at a time, between two polls of
// the pipelines.
//
// Invariants
// 1. Each request is completed once: by its shard, or by the following call.
// 2. Every poll serves all shards: none waits for another one.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "shards/sharded_map.hpp"

namespace espalier::client {

class ShardedPipeline final : public PipelineImpl {
 public:
  ShardedPipeline(ShardedMap& map, std::uint32_t in_flight);
  ~ShardedPipeline() override;

  void submit(std::span<const Request> requests, Handler& handler) override;
  std::size_t poll() override;
  std::size_t advance() override;
  void run(std::span<const Request> requests, Handler& handler) override;

 private:
  /// The requests of one submit() that go to one shard.
  class Group;
  /// A call of the map to be made.
  struct Later {
    const Request* request;
    Handler* handler;
  };

  void follow();
  [[nodiscard]] std::size_t place_of(const Request& request) const;
  Result<PipelineImpl*> pipe(std::size_t shard);
  void send(std::size_t shard, std::unique_ptr<Group> group);
  void forget_ended();
  bool do_later();
  bool look();
  [[nodiscard]] std::size_t pending() const;

  ShardedMap& map_;
  const std::uint32_t in_flight_;
  ShardedMap::Nodes nodes_;
  std::vector<std::unique_ptr<Group>> groups_;        // destroyed after the pipelines that use them
  std::vector<std::unique_ptr<PipelineImpl>> pipes_;  // by shard
  std::deque<Later> later_;
  std::size_t in_groups_ = 0;  // requests that are in flight
  std::uint64_t completed_ = 0;
};

}  // namespace espalier::client
