// SPDX-License-Identifier: Apache-2.0
// Threads for what would keep an engine too long: long scans, compiling, system calls, freeing much
// memory. Jobs work in steps (helper_job.hpp); principals share the helpers' time fairly, and the
// clients of each share its part (fair_queue.hpp), so that one with many or heavy jobs, or with
// many clients, slows others by no more than its share.
//
// What needs a helper once more before it is over goes first: the ends of clients, then jobs to be
// ended. That is short, there is at most as much of it as jobs were accepted, and its time is
// charged like that of steps.
//
// A job that is woken during a step is stepped again, whatever the step says: `woken` is cleared
// under the lock before the step begins, so no wake-up falls between a look and a wait.
//
// Thread: any, for all calls but constructor and destructor. One lock, held for moves between lists
// only; no code of a job or a callback runs under it.
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
  /// system has no thread.
  explicit HelperPool(const HelperOptions& options = {});
  /// Does what the node itself asked for to its end; cancels the jobs of clients, and those of the
  /// node that wait, since no thread wakes them any more. Callbacks may submit meanwhile: for the
  /// node that is done too, for clients refused.
  ~HelperPool();
  HelperPool(const HelperPool&) = delete;
  HelperPool& operator=(const HelperPool&) = delete;

  /// Runs `work` once, as a job of the node itself: never refused.
  void run(std::function<void()> work);
  /// Runs `work` once for a client, then `ended`; of a job that is cancelled or too late before it
  /// began, only `ended`. Errors: as submit().
  Result<JobId> run(const JobOptions& options, std::function<void()> work,
                    std::function<void(JobEnd)> ended);
  /// Accepts a job, behind the others of its client. A job that is refused is destroyed without a
  /// call of ended().
  /// Errors: out_of_memory (the client, or all together, have as many jobs as they may, or its
  /// principal has as many as are left for others; detail is the limit), not_found (the client has
  /// ended or never was), connection_lost (the pool ends).
  Result<JobId> submit(std::unique_ptr<HelperJob> job, const JobOptions& options = {});

  /// Makes a job that waits ready, or has one that runs stepped again. Of one that is ready or has
  /// ended, nothing. Cost: a lock and a look-up; a system call if a helper sleeps.
  void wake(JobId job);
  /// Ends a job: at once if it is ready or waits, else after its present step. If that step is its
  /// last, the job is done all the same. Nothing if it has ended. Returns before ended() is called.
  void cancel(JobId job);

  /// A client with a part of its principal's share, or without one with a share of its own; to be
  /// ended by end_client().
  [[nodiscard]] ClientId add_client(PrincipalRef account = nullptr);
  /// Cancels all jobs of a client and accepts no more. Calls `ended` on a helper when none of them
  /// is left: after their ended() and their destructors. Does not wait.
  /// Cost: O(its jobs). Requires: add_client() returned it, and it was not ended.
  void end_client(ClientId client, std::function<void()> ended);

  [[nodiscard]] HelperNumbers numbers() const;
  /// The time that a client's jobs took. 0 if there is no such client.
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
    PrincipalRef account;  // null: it has a share of its own
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
  std::condition_variable more_;  // and all below is guarded by mutex_
  FairQueue queue_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::unordered_map<std::uint64_t, Job*> by_id_;       // all jobs
  std::set<std::pair<std::uint64_t, Job*>> deadlines_;  // of jobs that are not ending
  base::Chain<Job, &Job::next_ending> ending_;
  base::Chain<Client, &Client::next_closed>
      closed_;  // without jobs, whose callback is to be called
  std::uint64_t last_job_ = 0;
  std::uint64_t last_client_ = 0;
  std::uint64_t client_jobs_ = 0;  // of all but the node itself
  std::uint64_t closing_clients_ = 0;
  bool stopping_ = false;
  HelperNumbers numbers_;  // threads, ready and clients are left 0
  std::vector<std::thread> threads_;
};

}  // namespace espalier::offload
