// SPDX-License-Identifier: Apache-2.0
// The processor time of a request on each side, on machines with fewer cores than spinning threads,
// and the rate at which sides with cores of their own would execute such requests.
//
// A spinning thread uses processor time whether it works or not. So costs are measured in turns: a
// client sends a batch, yields its core until the workers have had time to answer, and takes the
// answers. For workers only turns with work count; for the client, its calls that sent requests or
// took answers. The cost of reading the clock is subtracted.
//
// The model is based on these costs alone: the side with the highest cost per request works without
// a pause, and determines the rate. It ignores waits for cache lines of another core, and smaller
// batches than those measured. So it is a bound, and called `model_`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "espalier/map.hpp"
#include "node/node.hpp"

namespace espalier::bench {

/// The work of a node's workers for requests, while this lives.
class WorkerMeter {
 public:
  /// The node must outlive it.
  explicit WorkerMeter(const node::Node& node);
  ~WorkerMeter();
  WorkerMeter(const WorkerMeter&) = delete;
  WorkerMeter& operator=(const WorkerMeter&) = delete;

  /// Processor time of all workers' turns with work, since it was made, without unfinished turns.
  [[nodiscard]] double cpu_ns() const;

 private:
  struct Busy {
    std::uint64_t turns = 0;
    std::uint64_t cpu_ns = 0;
  };
  [[nodiscard]] Busy busy() const;

  const node::Node& node_;
  Busy before_;
};

/// Runs a pipeline's requests in turns with the threads that answer them. Thread: the pipeline's.
class ClientTurns {
 public:
  /// `reads_alone`: the pipeline uses one-sided reads, and all of its work counts.
  explicit ClientTurns(bool reads_alone) : reads_alone_(reads_alone) {}

  /// Runs one batch; at most as many as the pipeline has in flight.
  void run(Pipeline& pipeline, std::span<const Request> batch, Handler& handler);
  /// Processor time of its calls that sent requests or took answers.
  [[nodiscard]] double cpu_ns() const { return cpu_ns_; }

 private:
  const bool reads_alone_;
  double cpu_ns_ = 0;
};

/// Enough batches for a measurement of costs.
inline constexpr std::uint64_t kCostBatches = 1'000;

/// One of the sides of requests.
struct Side {
  double cpu_ns_per_op = 0;  ///< averaged over all requests
  double cores = 1;          ///< of its own
  double slowness = 1;       ///< of these: node::WorkerCore
};

/// Requests a second of sides with cores of their own: the minimum over the sides. 0: all costs are
/// 0.
[[nodiscard]] double model_ops_per_s(std::span<const Side> sides);

/// The overhead of reading a thread's processor clock in such measurements.
[[nodiscard]] double cpu_clock_ns();

}  // namespace espalier::bench
