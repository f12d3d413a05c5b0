// SPDX-License-Identifier: Apache-2.0
#include "bench/workers.hpp"

#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/probe.hpp"

namespace espalier::bench {
namespace {

class LoadThread {
 public:
  LoadThread(Target& target, std::span<const Request> measured, std::span<const Request> tail,
             const WorkPlan& plan, std::vector<std::uint64_t> due_ns)
      : target_(target),
        measured_(measured),
        tail_(tail),
        plan_(plan),
        due_ns_(std::move(due_ns)),
        deadline_ns_(plan.seconds_max > 0 ? static_cast<std::uint64_t>(plan.seconds_max * 1e9)
                                          : std::numeric_limits<std::uint64_t>::max()) {
    result_.answers = Answers(plan.certain_items, plan.fixed_values);
  }

  void run(std::uint32_t index, std::barrier<>& barrier) {
    pin_worker(index);
    guarded([this] {
      session_ = plan_.in_flight == 0 ? target_.open_session()
                                      : target_.open_session_with(plan_.in_flight);
    });
    barrier.arrive_and_wait();
    start_ns_ = base::monotonic_ns();
    guarded([this] { result_.ops = run_measured(); });
    end_ns_ = base::monotonic_ns();
    result_.scanned_items = result_.answers.scanned_items();
    barrier.arrive_and_wait();
    guarded([this] {
      if (plan_.tail) run_clocked(tail_);
    });
    guarded([this] { session_.reset(); });
  }

  /// Errors: rethrows what the work threw.
  [[nodiscard]] const WorkResult& result() const {
    if (error_) std::rethrow_exception(error_);
    return result_;
  }

  [[nodiscard]] std::uint64_t start_ns() const { return start_ns_; }
  [[nodiscard]] std::uint64_t end_ns() const { return end_ns_; }

 private:
  // After an error a worker does nothing more, but keeps meeting the others at the barrier.
  template <class Step>
  void guarded(Step step) {
    if (error_) return;
    try {
      step();
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  std::uint64_t run_measured() {
    if (!due_ns_.empty()) {
      session_->run_paced(measured_, due_ns_, result_.answers, result_.latencies);
      return measured_.size();
    }
    if (plan_.clocked) return run_clocked(measured_);
    return windows(measured_, [this](auto window) { session_->run(window, result_.answers); });
  }

  std::uint64_t run_clocked(std::span<const Request> requests) {
    return windows(requests, [this](auto window) {
      session_->run_timed(window, result_.answers, result_.latencies);
    });
  }

  template <class RunWindow>
  std::uint64_t windows(std::span<const Request> requests, RunWindow run_window) {
    const base::Stopwatch watch;
    std::uint64_t done = 0;
    while (done < requests.size()) {
      if (watch.elapsed_ns() > deadline_ns_) {
        result_.complete = false;
        break;
      }
      const auto window = requests.subspan(done, std::min(kWindow, requests.size() - done));
      run_window(window);
      done += window.size();
    }
    return done;
  }

  Target& target_;
  std::span<const Request> measured_;
  std::span<const Request> tail_;
  WorkPlan plan_;
  std::vector<std::uint64_t> due_ns_;
  std::uint64_t deadline_ns_;
  std::unique_ptr<TargetSession> session_;
  WorkResult result_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::exception_ptr error_;
};

}  // namespace

std::vector<std::uint64_t> arrivals(std::uint64_t count, double per_second, std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint64_t> due_ns;
  due_ns.reserve(count);
  double at_ns = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    at_ns -= std::log1p(-random.unit()) * 1e9 / per_second;
    due_ns.push_back(static_cast<std::uint64_t>(at_ns));
  }
  return due_ns;
}

void WorkResult::add(const WorkResult& other) {
  ops += other.ops;
  scanned_items += other.scanned_items;
  complete = complete && other.complete;
  answers.add(other.answers);
  latencies.merge(other.latencies);
}

WorkResult run_workers(Target& target, std::span<const RequestList> lists,
                       std::span<const std::uint64_t> measured, const WorkPlan& plan) {
  std::vector<std::unique_ptr<LoadThread>> workers;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const std::span<const Request> requests = lists[i].requests();
    std::vector<std::uint64_t> due_ns;
    if (plan.per_second > 0) {
      const double own_per_second = plan.per_second / static_cast<double>(lists.size());
      due_ns = arrivals(measured[i], own_per_second, plan.seed + i);
    }
    workers.push_back(std::make_unique<LoadThread>(target, requests.first(measured[i]),
                                                   requests.subspan(measured[i]), plan,
                                                   std::move(due_ns)));
  }
  std::barrier<> barrier(static_cast<std::ptrdiff_t>(workers.size()));
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < workers.size(); ++i) {
      threads.emplace_back([&barrier, i, worker = workers[i].get()] { worker->run(i, barrier); });
    }
  }
  WorkResult result;
  std::uint64_t start_ns = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end_ns = 0;
  for (const auto& worker : workers) {
    result.add(worker->result());
    start_ns = std::min(start_ns, worker->start_ns());
    end_ns = std::max(end_ns, worker->end_ns());
  }
  result.seconds = static_cast<double>(end_ns - start_ns) * 1e-9;
  return result;
}

WorkResult run_on_one_thread(Target& target, std::span<const RequestList> lists,
                             std::span<const std::uint64_t> measured, const WorkPlan& plan) {
  WorkResult result;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const WorkResult one = run_workers(target, lists.subspan(i, 1), measured.subspan(i, 1), plan);
    result.add(one);
    result.seconds += one.seconds;
  }
  return result;
}

}  // namespace espalier::bench
