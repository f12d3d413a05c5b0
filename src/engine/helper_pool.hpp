// SPDX-License-Identifier: Apache-2.0
// A pool of threads for work too long for an engine's thread: long scans, compiling, system calls,
// freeing much memory. Jobs run in steps (helper_job.hpp). Principals share the helpers' time
// fairly, and the clients of each share its part (fair_queue.hpp), so one with many or heavy jobs,
// or with many clients, slows others by no more than its share.
//
// Closing takes precedence over steps: first clients that end, then jobs that end. Each is short,
// there is at most one per accepted job, and its time is charged like a step's.
//
// A job that is woken during a step runs again, whatever the step returns: `woken` is cleared under
// the lock before the step begins, so no wake-up is lost between a check and a wait.
//
// Thread: any, for all calls but constructor and destructor. One lock, held only to move jobs
// between lists; no code of a job or a callback runs under it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/chain.hpp"
#include "engine/fair_queue.hpp"
#include "engine/helper_job.hpp"
#include "engine/principal_accounts.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

class HelperPool {
 public:
  /// Requires: at least one thread, and limits that are not 0. Throws std::system_error if the
  /// system can create no thread.
  explicit HelperPool(const HelperOptions& options = {});
  /// Finishes the node's own jobs; cancels the jobs of clients, and the node's jobs that wait,
  /// since no thread wakes them any more. Callbacks may submit meanwhile: the node's jobs are
  /// finished too, those of clients are refused.
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  /// Runs `work` once, as the node's own job: never refused.
  void run(std::function<void()> work);
  /// Runs `work` once for a client, then `ended`. If the job is cancelled or past its deadline
  /// before it began, only `ended`. Errors: as submit().
  Result<JobId> run(const JobOptions& options, std::function<void()> work,
                    std::function<void(JobEnd)> ended);
  /// Accepts a job, behind the others of its client. A refused job is destroyed without a call of
  /// ended(). Errors: out_of_memory (the client, its principal, or the pool has reached its limit
  /// on jobs; detail: the limit), not_found (the client has ended or never was), connection_lost
  /// (the pool ends).
  Result<JobId> submit(std::unique_ptr<HelperJob> job, const JobOptions& options = {});

  /// Makes a waiting job ready, or has a running one stepped again. No effect on one that is ready
  /// or has ended. Cost: a lock and a lookup; a system call if a helper sleeps.
  void wake(JobId job);
  /// Ends a job: immediately if it is ready or waits, else after its present step. If that step is
  /// its last, the job is done all the same. No effect if it has ended. Returns before ended() is
  /// called.
  void cancel(JobId job);

  /// Adds a client, with a part of its principal's share, or without a principal with a share of
  /// its own. Must be ended by end_client().
  [[nodiscard]] ClientId add_client(PrincipalRef account = nullptr);
  /// Cancels all jobs of a client and accepts no more. When none is left, after their ended() and
  /// their destructors, a helper calls `ended`. Does not wait. Cost: O(its jobs). Requires:
  /// add_client() returned it, and it was not ended.
  void end_client(ClientId client, std::function<void()> ended);

  [[nodiscard]] HelperNumbers numbers() const;
  /// Time that a client's jobs took. 0: there is no such client.
  [[nodiscard]] std::uint64_t served_ns(ClientId client) const;

 private:
  struct Client;
  enum class JobState : std::uint8_t { ready, running, waiting, ending };
  struct Job : FairQueue::Item {
    Job(JobId id_in, Client& client_in, std::unique_ptr<HelperJob> work_in,
        std::uint64_t deadline_in);
    const JobId id;
    Client& client;
    std::unique_ptr<HelperJob> work;
    const std::uint64_t deadline_ns;
    std::list<Job>::iterator at;  // in client.jobs
    Job* next_ending = nullptr;
    JobState state = JobState::ready;
    JobEnd end = JobEnd::done;  // if it is ending
    bool woken = false;         // since its present step began
    std::atomic<bool> cancelled{false};
  };
  struct Client {
    Client() = default;
    explicit Client(PrincipalRef account_in)
        : account(std::move(account_in)), flow(account->helpers.group) {}
    PrincipalRef account;  // null: a share of its own
    FairQueue::Flow flow;
    std::list<Job> jobs;
    ClientId id{};
    bool closing = false;
    std::function<void()> ended;
    Client* next_closed = nullptr;
  };
  using Lock = std::unique_lock<std::mutex>;

  void stop();
  void work(std::uint32_t number);
  [[nodiscard]] bool finished() const {
    return stopping_ && by_id_.empty() && closing_clients_ == 0;
  }
  [[nodiscard]] Result<Client*> admit(ClientId id);
  void end(Job& job, JobEnd how);
  void cancel(Job& job);
  void end_overdue();
  void step(Lock& lock, Job& job);
  void finish_job(Lock& lock, Job& job);
  void finish_client(Lock& lock, Client& client);
  void erase(Job& job);
  void count_step(std::uint64_t took_ns);
  void wait_for_work(Lock& lock);

  const HelperOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable more_;  // mutex_ guards it and all below
  FairQueue queue_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, Job*> by_id_;       // all jobs
  std::set<std::pair<std::uint64_t, Job*>> deadlines_;  // of jobs that are not ending
  base::Chain<Job, &Job::next_ending> ending_;
  base::Chain<Client, &Client::next_closed>
      closed_;  // have no jobs left; their callbacks are to be called
  std::uint64_t last_job_ = 0;
  std::uint64_t last_client_ = 0;
  std::uint64_t client_jobs_ = 0;  // of clients; without the node's own
  std::uint64_t closing_clients_ = 0;
  bool stopping_ = false;
  HelperNumbers numbers_;  // threads, ready and clients are left 0
  std::vector<std::thread> threads_;
};

}  // namespace espalier::offload
