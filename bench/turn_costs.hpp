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

/// What the workers of a node do for requests, as long as this lives.
class WorkerMeter {
 public:
  /// The node outlives it.
  explicit WorkerMeter(const node::Node& node);
  ~WorkerMeter();
  WorkerMeter(const WorkerMeter&) = delete;
  WorkerMeter& operator=(const WorkerMeter&) = delete;

  /// Processor time of turns in which something was done, since it was made, of all workers. A turn
  /// that is not over is not in it.
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
  /// `reads_alone`: the pipeline reads the memory of nodes itself, and all that it does counts.
  explicit ClientTurns(bool reads_alone) : reads_alone_(reads_alone) {}

  /// Does one batch; no more than the pipeline has in flight.
  void run(Pipeline& pipeline, std::span<const Request> batch, Handler& handler);
  /// Processor time of its calls that sent something or took something.
  [[nodiscard]] double cpu_ns() const { return cpu_ns_; }

 private:
  const bool reads_alone_;
  double cpu_ns_ = 0;
};

/// How many batches are enough for costs.
inline constexpr std::uint64_t kCostBatches = 1'000;

/// One of the sides of requests.
struct Side {
  double cpu_ns_per_op = 0;  ///< of all requests, also those that it has no part in
  double cores = 1;          ///< that it would have
  double slowness = 1;       ///< of these: node::WorkerCore
};

/// Requests a second of sides with cores of their own: the least that one of them can do.
/// 0: nothing costs anything.
[[nodiscard]] double model_ops_per_s(std::span<const Side> sides);

/// What reading the clock of a thread's processor time adds to what is measured by it.
[[nodiscard]] double cpu_clock_ns();

}  // namespace espalier::bench
