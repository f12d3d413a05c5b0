// SPDX-License-Identifier: Apache-2.0
// A job of the helper pool: work too long for an engine's thread, split into short steps.
//
//              submit           pop             done
//   (caller) ---------> ready -------> running ------> ended(done), destroyed
//                         ^ again, wake | | wait
//                         +-------------+ +---> waiting ---wake---> ready
//
// Cancel, the deadline and the end of its client take a job out of ready or waiting, or stop it
// after its present step, and end it with that outcome. Each accepted job ends exactly once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>

namespace espalier::offload {

/// Unique within a pool.
enum class JobId : std::uint64_t {};
/// The client that a job is charged to; unique within a pool.
enum class ClientId : std::uint64_t {};
/// The node itself: shares time like a client, without limits on its jobs.
inline constexpr ClientId kNodeClient{0};

/// The result of a step.
enum class JobStep : std::uint8_t {
  again,  ///< there is more to do
  done,   ///< this was the last step
  wait    ///< nothing to do before wake()
};

/// How a job ended.
enum class JobEnd : std::uint8_t {
  done,       ///< a step said so
  cancelled,  ///< by cancel(), or by the end of its client or of the pool
  deadline    ///< its deadline passed
};

/// What a step may use.
class StepContext {
 public:
  StepContext(JobId job, std::uint64_t until_ns, const std::atomic<bool>& cancelled)
      : job_(job), until_ns_(until_ns), cancelled_(cancelled) {}

  [[nodiscard]] JobId job() const { return job_; }
  /// When the step should end, by base::monotonic_ns().
  [[nodiscard]] std::uint64_t until_ns() const { return until_ns_; }
  /// Whether the step should return `again` now: its time is over, or the job is cancelled.
  /// Cost: reads the clock, about 25 ns.
  [[nodiscard]] bool should_return() const;
  /// The same, for a caller that has just read that clock.
  [[nodiscard]] bool should_return(std::uint64_t now_ns) const {
    return cancelled_.load(std::memory_order_relaxed) || now_ns >= until_ns_;
  }

 private:
  JobId job_;
  std::uint64_t until_ns_;
  const std::atomic<bool>& cancelled_;
};

/// Thread: one helper at a time calls its functions and its destructor, in order. No lock of the
/// pool is held, so they may call the pool. They must not throw.
class HelperJob {
 public:
  HelperJob() = default;
  virtual ~HelperJob() = default;
  HelperJob(const HelperJob&) = delete;
  HelperJob& operator=(const HelperJob&) = delete;

  /// Does some of the work: at most HelperOptions::step_ns, where possible. A longer step is
  /// charged in full, but occupies a helper meanwhile.
  virtual JobStep step(StepContext& context) = 0;
  /// The job ended: called exactly once, and only the destructor follows. Possibly without any step
  /// before.
  virtual void ended(JobEnd end) { static_cast<void>(end); }
};

struct JobOptions {
  static constexpr std::uint64_t kNoDeadline = std::numeric_limits<std::uint64_t>::max();

  ClientId client = kNodeClient;
  /// By base::monotonic_ns().
  std::uint64_t deadline_ns = kNoDeadline;
};

struct HelperOptions {
  std::uint32_t threads = 1;
  /// How long a step may take.
  std::uint64_t step_ns = 200'000;
  /// The time that a client may take in its turn.
  std::uint64_t quantum_ns = 200'000;
  std::uint32_t client_jobs_max = 256;
  /// Of all clients; the node's own are not counted.
  std::uint32_t jobs_max = 4096;
  /// Added to the nice value of the thread that creates the pool, up to 19 in total: the higher,
  /// the less helpers compete with other threads. docs/design/helpers.md has measurements.
  int nice = 5;
  /// SCHED_BATCH: a helper that wakes does not preempt another thread.
  bool batch = false;
};

struct HelperNumbers {
  std::uint64_t threads = 0;
  std::uint64_t ready = 0;  // jobs that wait for a helper
  std::uint64_t running = 0;
  std::uint64_t waiting = 0;  // jobs that wait for wake()
  std::uint64_t clients = 0;  // without the node itself
  std::uint64_t steps = 0;
  std::uint64_t long_steps = 0;  // steps that took more than step_ns
  std::uint64_t longest_step_ns = 0;
  std::uint64_t busy_ns = 0;  // of all helpers
  std::uint64_t refused = 0;  // jobs
};

}  // namespace espalier::offload
