// SPDX-License-Identifier: Apache-2.0
// One thread that sends no-ops to a node: the cost of requests and answers without work.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/histogram.hpp"
#include "channel/rings/thread_rings.hpp"

namespace espalier::bench {

/// The load of one thread on a node.
struct NoopPlan {
  std::uint32_t connected = 1;  ///< connections that are open
  std::uint32_t active = 1;     ///< those of them that send
  std::uint32_t in_flight = 1;  ///< on each active one
  std::uint32_t payload_bytes = 0;
  std::uint64_t ops = 0;
};

/// Connects to the node at this address, and takes a lane. Errors: throws std::runtime_error.
std::unique_ptr<client::ThreadRings> open_lane(const std::string& address);

class NoopClient {
 public:
  /// Errors: throws std::runtime_error if the node does not take so many connections.
  NoopClient(const std::string& address, const NoopPlan& plan);

  /// Keeps `in_flight` no-ops in flight in each active lane, until `ops` are done. Returns a sum
  /// over the answers. Errors: throws std::runtime_error if the node is gone.
  std::uint64_t keep_in_flight(std::uint64_t ops);
  /// Sends no-ops in batches through the first lane, each after all answers of the one before;
  /// `ops` in all. Latencies are of batches, to their last answer. Errors: as keep_in_flight.
  std::uint64_t in_batches(std::uint64_t ops, std::uint32_t batch, base::Histogram& latencies);
  /// The same with batches of one.
  std::uint64_t one_at_a_time(std::uint64_t ops, base::Histogram& latencies) {
    return in_batches(ops, 1, latencies);
  }

 private:
  void send(std::uint32_t lane, std::uint32_t count);
  std::uint64_t wait_for_answer();

  NoopPlan plan_;
  std::string payload_;
  std::vector<std::unique_ptr<client::ThreadRings>> lanes_;
};

}  // namespace espalier::bench
