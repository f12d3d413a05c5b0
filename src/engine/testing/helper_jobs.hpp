// SPDX-License-Identifier: Apache-2.0
// Jobs for tests of the helper pool, and counts of how they ended. Waits have a timeout, so a lost
// wake-up fails a test instead of hanging it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "engine/helper_pool.hpp"

namespace espalier::offload {

inline constexpr std::uint64_t kLongestWaitNs = 30'000'000'000;

class Latch {
 public:
  void open() {
    // Notifies under the lock, for the thread that waited may destroy the latch.
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::nanoseconds(kLongestWaitNs),
                             [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Counts how jobs ended. Copies share the counts: each job has a copy, since it may outlive the
/// test's.
class Ends {
 public:
  void count(JobEnd end) {
    const std::lock_guard lock(counts_->mutex);
    ++counts_->ends[static_cast<std::size_t>(end)];
    counts_->changed.notify_all();
  }
  void count_step() { counts_->steps.fetch_add(1, std::memory_order_relaxed); }
  void count_destroyed() { counts_->destroyed.fetch_add(1, std::memory_order_release); }

  [[nodiscard]] std::uint64_t of(JobEnd end) const {
    const std::lock_guard lock(counts_->mutex);
    return counts_->ends[static_cast<std::size_t>(end)];
  }
  [[nodiscard]] std::uint64_t all() const {
    const std::lock_guard lock(counts_->mutex);
    return counts_->ends[0] + counts_->ends[1] + counts_->ends[2];
  }
  [[nodiscard]] std::uint64_t steps() const {
    return counts_->steps.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t destroyed() const {
    return counts_->destroyed.load(std::memory_order_acquire);
  }
  /// Waits until so many steps were begun. Returns false after a timeout.
  [[nodiscard]] bool wait_for_steps(std::uint64_t count) const {
    const std::uint64_t until = base::monotonic_ns() + kLongestWaitNs;
    while (steps() < count) {
      if (base::monotonic_ns() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  /// Waits until so many jobs have ended. Returns false after a timeout.
  [[nodiscard]] bool wait(std::uint64_t count) {
    std::unique_lock lock(counts_->mutex);
    return counts_->changed.wait_for(lock, std::chrono::nanoseconds(kLongestWaitNs), [this, count] {
      return counts_->ends[0] + counts_->ends[1] + counts_->ends[2] >= count;
    });
  }

 private:
  struct Counts {
    std::mutex mutex;
    std::condition_variable changed;
    std::array<std::uint64_t, 3> ends{};
    std::atomic<std::uint64_t> steps{0};
    std::atomic<std::uint64_t> destroyed{0};
  };
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
};

class FunctionJob final : public HelperJob {
 public:
  FunctionJob(const Ends& ends, std::function<JobStep(StepContext&)> step)
      : ends_(ends), step_(std::move(step)) {}
  ~FunctionJob() override { ends_.count_destroyed(); }
  JobStep step(StepContext& context) override {
    ends_.count_step();
    return step_(context);
  }
  void ended(JobEnd end) override { ends_.count(end); }

 private:
  Ends ends_;
  std::function<JobStep(StepContext&)> step_;
};

inline std::unique_ptr<HelperJob> make_job(Ends& ends, std::function<JobStep(StepContext&)> step) {
  return std::make_unique<FunctionJob>(ends, std::move(step));
}

/// Done after so many steps.
inline std::unique_ptr<HelperJob> counting_job(Ends& ends, std::uint64_t steps) {
  return make_job(ends, [left = steps](StepContext&) mutable {
    return --left == 0 ? JobStep::done : JobStep::again;
  });
}

/// Waits again after each wake-up.
inline std::unique_ptr<HelperJob> waiting_job(Ends& ends) {
  return make_job(ends, [](StepContext&) { return JobStep::wait; });
}

/// A job that takes so long for each step, and never ends by itself.
inline std::unique_ptr<HelperJob> busy_job(Ends& ends, std::uint64_t step_ns) {
  return make_job(ends, [step_ns](StepContext&) {
    const std::uint64_t until = base::monotonic_ns() + step_ns;
    while (base::monotonic_ns() < until) {
    }
    return JobStep::again;
  });
}

/// Waits until so many jobs wait. Returns false after a timeout.
inline bool until_waiting(const HelperPool& pool, std::uint64_t count,
                          std::uint64_t longest_ns = kLongestWaitNs) {
  const std::uint64_t until = base::monotonic_ns() + longest_ns;
  while (pool.numbers().waiting != count) {
    if (base::monotonic_ns() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Occupies one helper until open(), at the latest until its destruction.
class Blocker {
 public:
  explicit Blocker(HelperPool& pool) {
    const auto latches = latches_;
    pool.run([latches] {
      latches->begun.open();
      static_cast<void>(latches->open.wait());
    });
    static_cast<void>(latches_->begun.wait());
  }
  ~Blocker() { open(); }
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;
  void open() { latches_->open.open(); }

 private:
  struct Latches {
    Latch begun;
    Latch open;
  };
  std::shared_ptr<Latches> latches_ = std::make_shared<Latches>();
};

}  // namespace espalier::offload
