// SPDX-License-Identifier: Apache-2.0
// The threads of a pool: each takes the next piece of work, and releases the lock while code of a
// job or a callback runs.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "engine/helper_pool.hpp"

namespace espalier::offload {
namespace {

// No effect if the system refuses: helpers then have the weight of other threads.
void take_weight(int nice, bool batch) {
  if (batch) {
    const sched_param none{};
    ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
  }
  // On Linux this sets the calling thread, not its process.
  if (nice != 0)
    ::setpriority(PRIO_PROCESS, 0, std::min(19, ::getpriority(PRIO_PROCESS, 0) + nice));
}

}  // namespace

bool StepContext::should_return() const { return should_return(base::monotonic_ns()); }

void HelperPool::work(std::uint32_t number) {
  ::pthread_setname_np(::pthread_self(), ("helper-" + std::to_string(number)).c_str());
  take_weight(options_.nice, options_.batch);
  Lock lock(mutex_);
  while (!finished()) {
    end_overdue();
    if (!closed_.empty()) {
      Client& client = *closed_.pop();
      finish_client(lock, client);
    } else if (!ending_.empty()) {
      Job& job = *ending_.pop();
      finish_job(lock, job);
    } else if (FairQueue::Item* const item = queue_.pop(); item != nullptr) {
      step(lock, static_cast<Job&>(*item));
    } else {
      wait_for_work(lock);
    }
  }
  more_.notify_all();  // the other threads have finished too
}

// Ends jobs past their deadline. A running one is checked after its step.
void HelperPool::end_overdue() {
  if (deadlines_.empty()) return;
  const std::uint64_t now = base::monotonic_ns();
  for (auto next = deadlines_.begin(); next != deadlines_.end() && next->first <= now;) {
    Job& job = *next->second;
    if (job.state == JobState::running) {
      next = deadlines_.erase(next);
    } else {
      ++next;
      end(job, JobEnd::deadline);
    }
  }
}

void HelperPool::wait_for_work(Lock& lock) {
  if (deadlines_.empty()) return more_.wait(lock);
  const std::chrono::nanoseconds until(deadlines_.begin()->first);
  more_.wait_until(lock, std::chrono::steady_clock::time_point(until));
}

void HelperPool::step(Lock& lock, Job& job) {
  ESPALIER_ASSERT(job.state == JobState::ready);
  job.state = JobState::running;
  job.woken = false;
  ++numbers_.running;
  lock.unlock();
  const std::uint64_t start = base::monotonic_ns();
  StepContext context(job.id, start + options_.step_ns, job.cancelled);
  const JobStep said = job.work->step(context);
  if (said == JobStep::done) {
    job.work->ended(JobEnd::done);
    job.work.reset();
  }
  const std::uint64_t took = base::monotonic_ns() - start;
  lock.lock();
  ++numbers_.steps;
  count_step(took);
  --numbers_.running;
  const bool late = job.deadline_ns <= start + took;
  const bool again = said == JobStep::again || job.woken;
  // While the pool ends, nothing wakes a waiting job.
  const bool cancelled = job.cancelled.load(std::memory_order_relaxed) || (stopping_ && !again);
  if (said == JobStep::done) {
    queue_.charge(job, took, false);
    erase(job);
  } else if (cancelled || late) {
    queue_.charge(job, took, false);
    end(job, cancelled ? JobEnd::cancelled : JobEnd::deadline);
  } else if (again) {
    job.state = JobState::ready;
    queue_.charge(job, took, true);
  } else {
    job.state = JobState::waiting;
    ++numbers_.waiting;
    queue_.charge(job, took, false);
  }
}

void HelperPool::count_step(std::uint64_t took_ns) {
  numbers_.busy_ns += took_ns;
  numbers_.longest_step_ns = std::max(numbers_.longest_step_ns, took_ns);
  if (took_ns > options_.step_ns) ++numbers_.long_steps;
}

void HelperPool::finish_job(Lock& lock, Job& job) {
  ESPALIER_ASSERT(job.state == JobState::ending);
  ++numbers_.running;
  lock.unlock();
  const std::uint64_t start = base::monotonic_ns();
  job.work->ended(job.end);
  job.work.reset();
  const std::uint64_t took = base::monotonic_ns() - start;
  lock.lock();
  count_step(took);
  --numbers_.running;
  queue_.charge(job.client.flow, took);
  erase(job);
}

void HelperPool::erase(Job& job) {
  ESPALIER_ASSERT(job.work == nullptr && !job.ready());
  Client& client = job.client;
  if (job.state == JobState::running && job.deadline_ns != JobOptions::kNoDeadline) {
    deadlines_.erase({job.deadline_ns, &job});
  }
  by_id_.erase(static_cast<std::uint64_t>(job.id));
  if (client.id != kNodeClient) --client_jobs_;
  if (client.account) --client.account->helpers.jobs;
  client.jobs.erase(job.at);
  if (client.closing && client.jobs.empty()) closed_.push(&client);
}

void HelperPool::finish_client(Lock& lock, Client& client) {
  ESPALIER_ASSERT(client.closing && client.jobs.empty());
  std::function<void()> ended = std::move(client.ended);
  clients_.erase(static_cast<std::uint64_t>(client.id));
  lock.unlock();
  if (ended) ended();
  ended = nullptr;  // frees its captures outside the lock
  lock.lock();
  --closing_clients_;
}

}  // namespace espalier::offload
