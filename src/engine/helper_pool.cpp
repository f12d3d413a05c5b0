// SPDX-License-Identifier: Apache-2.0
// The calls of a pool; helper_threads.cpp has its threads.
#include "engine/helper_pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace espalier::offload {
namespace {

std::uint64_t number_of(ClientId id) { return static_cast<std::uint64_t>(id); }
std::uint64_t number_of(JobId id) { return static_cast<std::uint64_t>(id); }

class OneShot final : public HelperJob {
 public:
  OneShot(std::function<void()> work, std::function<void(JobEnd)> ended)
      : work_(std::move(work)), ended_(std::move(ended)) {}
  JobStep step(StepContext&) override {
    work_();
    return JobStep::done;
  }
  void ended(JobEnd end) override {
    work_ = nullptr;  // frees its captures before the end is reported
    if (ended_) ended_(end);
  }

 private:
  std::function<void()> work_;
  std::function<void(JobEnd)> ended_;
};

}  // namespace

HelperPool::Job::Job(JobId id_in, Client& client_in, std::unique_ptr<HelperJob> work_in,
                     std::uint64_t deadline_in)
    : Item(client_in.flow),
      id(id_in),
      client(client_in),
      work(std::move(work_in)),
      deadline_ns(deadline_in) {}

HelperPool::HelperPool(const HelperOptions& options)
    : options_(options), queue_(options.quantum_ns) {
  ESPALIER_ASSERT(options_.threads != 0 && options_.step_ns != 0);
  ESPALIER_ASSERT(options_.nice >= 0 && options_.nice <= 19);
  ESPALIER_ASSERT(options_.client_jobs_max != 0 && options_.jobs_max != 0);
  clients_.emplace(number_of(kNodeClient), std::make_unique<Client>());
  threads_.reserve(options_.threads);
  try {
    for (std::uint32_t i = 0; i < options_.threads; ++i) {
      threads_.emplace_back([this, i] { work(i); });
    }
  } catch (...) {  // some threads were created
    stop();
    throw;
  }
}

HelperPool::~HelperPool() {
  stop();
  ESPALIER_ASSERT(by_id_.empty() && deadlines_.empty() && ending_.empty() && closed_.empty());
  ESPALIER_ASSERT(queue_.running() == 0 && numbers_.waiting == 0);
}

// Returns when all threads have finished.
void HelperPool::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
    for (const auto& [number, client] : clients_) {
      for (Job& job : client->jobs) {
        if (client->id != kNodeClient || job.state == JobState::waiting) cancel(job);
      }
    }
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HelperPool::run(std::function<void()> work) {
  const auto accepted = run(JobOptions{}, std::move(work), {});
  ESPALIER_ASSERT(accepted.has_value());
}

Result<JobId> HelperPool::run(const JobOptions& options, std::function<void()> work,
                              std::function<void(JobEnd)> ended) {
  return submit(std::make_unique<OneShot>(std::move(work), std::move(ended)), options);
}

Result<JobId> HelperPool::submit(std::unique_ptr<HelperJob> work, const JobOptions& options) {
  ESPALIER_ASSERT(work != nullptr);
  const Lock lock(mutex_);
  const auto client = admit(options.client);
  if (!client) {
    ++numbers_.refused;
    return std::unexpected(client.error());
  }
  const JobId id{++last_job_};
  // The wait's clock cannot represent later times, which are centuries away.
  const bool in_time = options.deadline_ns <= std::uint64_t{1} << 62;
  std::list<Job> alone;  // until all allocations have succeeded
  Job& job = alone.emplace_back(id, **client, std::move(work),
                                in_time ? options.deadline_ns : JobOptions::kNoDeadline);
  const auto by_id = by_id_.emplace(number_of(id), &job).first;
  auto deadline = deadlines_.end();
  try {
    if (in_time) deadline = deadlines_.emplace(job.deadline_ns, &job).first;
  } catch (...) {
    by_id_.erase(by_id);
    throw;
  }
  std::list<Job>& jobs = (*client)->jobs;
  jobs.splice(jobs.end(), alone);
  job.at = std::prev(jobs.end());
  if (options.client != kNodeClient) ++client_jobs_;
  if ((*client)->account) ++(*client)->account->helpers.jobs;
  queue_.push(job);
  if (in_time && deadline == deadlines_.begin()) {
    more_.notify_all();  // those that sleep until a later deadline must wake
  } else {
    more_.notify_one();
  }
  return id;
}

// Whether a client may have one more job.
Result<HelperPool::Client*> HelperPool::admit(ClientId id) {
  const auto found = clients_.find(number_of(id));
  if (id == kNodeClient) return found->second.get();
  if (stopping_) return fail(Code::connection_lost);
  if (found == clients_.end() || found->second->closing) return fail(Code::not_found);
  if (found->second->jobs.size() >= options_.client_jobs_max) {
    return fail(Code::out_of_memory, options_.client_jobs_max);
  }
  // At most as many as are left: n principals leave one in n + 1 to others.
  const PrincipalRef& account = found->second->account;
  const std::uint64_t most = options_.jobs_max;
  const std::uint64_t left = most - std::min(client_jobs_, most);
  if (left == 0 || (account && account->helpers.jobs >= left)) {
    return fail(Code::out_of_memory, options_.jobs_max);
  }
  return found->second.get();
}

void HelperPool::wake(JobId id) {
  const Lock lock(mutex_);
  const auto found = by_id_.find(number_of(id));
  if (found == by_id_.end()) return;
  Job& job = *found->second;
  if (job.state == JobState::running) {
    job.woken = true;
  } else if (job.state == JobState::waiting) {
    --numbers_.waiting;
    job.state = JobState::ready;
    queue_.push(job);
    more_.notify_one();
  }
}

void HelperPool::cancel(JobId id) {
  const Lock lock(mutex_);
  if (const auto found = by_id_.find(number_of(id)); found != by_id_.end()) cancel(*found->second);
}

void HelperPool::cancel(Job& job) {
  if (job.state == JobState::running) {
    job.cancelled.store(true, std::memory_order_relaxed);
  } else if (job.state != JobState::ending) {
    end(job, JobEnd::cancelled);
  }
}

// Has a helper end a job that is not running.
void HelperPool::end(Job& job, JobEnd how) {
  ESPALIER_ASSERT(job.state != JobState::ending && how != JobEnd::done);
  if (job.ready()) queue_.erase(job);
  if (job.state == JobState::waiting) --numbers_.waiting;
  if (job.deadline_ns != JobOptions::kNoDeadline) deadlines_.erase({job.deadline_ns, &job});
  job.state = JobState::ending;
  job.end = how;
  ending_.push(&job);
  more_.notify_one();
}

ClientId HelperPool::add_client(PrincipalRef account) {
  auto client =
      account ? std::make_unique<Client>(std::move(account)) : std::make_unique<Client>();
  const Lock lock(mutex_);
  client->id = ClientId{++last_client_};
  return clients_.emplace(last_client_, std::move(client)).first->second->id;
}

void HelperPool::end_client(ClientId id, std::function<void()> ended) {
  ESPALIER_ASSERT(id != kNodeClient);
  const Lock lock(mutex_);
  const auto found = clients_.find(number_of(id));
  ESPALIER_ASSERT(found != clients_.end() && !found->second->closing);
  Client& client = *found->second;
  client.closing = true;
  client.ended = std::move(ended);
  ++closing_clients_;
  for (Job& job : client.jobs) cancel(job);
  if (!client.jobs.empty()) return;
  closed_.push(&client);
  more_.notify_one();
}

HelperNumbers HelperPool::numbers() const {
  const Lock lock(mutex_);
  HelperNumbers numbers = numbers_;
  numbers.threads = threads_.size();
  numbers.ready = by_id_.size() - numbers.running - numbers.waiting;
  numbers.clients = clients_.size() - 1;
  return numbers;
}

std::uint64_t HelperPool::served_ns(ClientId id) const {
  const Lock lock(mutex_);
  const auto found = clients_.find(number_of(id));
  return found == clients_.end() ? 0 : found->second->flow.served_ns();
}

}  // namespace espalier::offload
