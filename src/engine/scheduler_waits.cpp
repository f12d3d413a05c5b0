// SPDX-License-Identifier: Apache-2.0
// The scheduler's requests that wait: for their turn, a version, a time, another thread, or for
// their clients to read deferred answers.
#include <algorithm>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "engine/client_table.hpp"
#include "engine/connection.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kGoOnTogether = 16;  // requests of one ring, when it has room again

/// A request's work on helpers. Afterwards the request continues, or is answered with out_of_memory
/// if the work threw std::bad_alloc.
class RequestJob final : public HelperJob {
 public:
  RequestJob(std::function<JobStep(StepContext&)> work, std::function<void()> resume,
             Request& request)
      : work_(std::move(work)), resume_(std::move(resume)), request_(request) {}
  JobStep step(StepContext& context) override {
    try {
      return work_(context);
    } catch (const std::bad_alloc&) {
      request_.no_memory = true;  // no other thread reads it before it is resumed
      return JobStep::done;
    }
  }
  void ended(JobEnd) override {
    work_ = nullptr;  // frees its captures before the request
    resume_();
  }

 private:
  std::function<JobStep(StepContext&)> work_;
  std::function<void()> resume_;
  Request& request_;
};

}  // namespace

bool Scheduler::go_on() {
  bool moved = false;
  if (!again_.empty()) {
    going_on_.swap(again_);  // those that go on again do so in the next turn
    for (Request* request : going_on_) {
      if (request->connection->closing) {
        release(*request);
      } else {
        step(*request);
      }
    }
    going_on_.clear();
    moved = true;
  }
  if (!times_.empty()) moved = go_on_timed() || moved;
  return moved;
}

bool Scheduler::go_on_timed() {
  const std::uint64_t now = base::monotonic_ns();
  bool moved = false;
  for (std::size_t i = 0; i < times_.size();) {
    if (times_[i].ns > now) {
      ++i;
      continue;
    }
    Request& request = *times_[i].request;
    times_[i] = times_.back();
    times_.pop_back();
    --request.connection->timed_count;
    take_back(request);
    step(request);
    moved = true;
  }
  return moved;
}

std::uint64_t Scheduler::sleep_limit_ns() const {
  std::uint64_t limit_ns = std::numeric_limits<std::uint64_t>::max();
  for (const OfKind& each : executors_) {
    limit_ns = std::min(limit_ns, each.executor->sleep_limit_ns());
  }
  limit_ns = std::min(limit_ns, release_limit_ns());
  if (times_.empty()) return limit_ns;
  const std::uint64_t soonest = std::ranges::min_element(times_, {}, &WaitsForTime::ns)->ns;
  const std::uint64_t now = base::monotonic_ns();
  return soonest > now ? std::min(limit_ns, soonest - now) : 0;
}

// Charged to its client, whose jobs are limited.
Result<void> Scheduler::hand_over(Request& request, std::unique_ptr<HelperJob> job,
                                  std::uint64_t deadline_ns) {
  if (request.connection->closing) {
    release(request);
    return {};
  }
  const auto submitted =
      services_.helpers.submit(std::move(job), {helper_client_of(request), deadline_ns});
  if (!submitted) return std::unexpected(submitted.error());
  ++handed_over_;
  set_aside(request, Counted::by_connection);
  return {};
}

// One client of the pool for each principal of a connection. Beyond some hundreds, which a device
// may have, the connection's own.
ClientId Scheduler::helper_client_of(const Request& request) {
  constexpr std::size_t kMost = 256;
  Connection& connection = *request.connection;
  PrincipalRef account = account_of(request);
  ClientId* client = &connection.helper_client;
  if (account != connection.account) [[unlikely]] {
    auto& relayed = connection.relayed_helper_clients;
    if (relayed.size() < kMost || relayed.contains(account->number)) {
      client = &relayed.try_emplace(account->number, kNodeClient).first->second;
    } else {
      account = connection.account;
    }
  }
  if (*client == kNodeClient) *client = services_.helpers.add_client(std::move(account));
  return *client;
}

// Called by a helper, when a job has ended.
void Scheduler::resume(Request& request) {
  // Within the lock: a thread that has seen the request may end the scheduler.
  const std::lock_guard lock(mutex_);
  resumed_.push_back(&request);
  has_resumed_.store(true, std::memory_order_release);
  wake();
}

void Scheduler::take_resumed() {
  {
    const std::lock_guard lock(mutex_);
    going_resumed_.swap(resumed_);
    has_resumed_.store(false, std::memory_order_relaxed);
  }
  handed_over_ -= static_cast<std::uint32_t>(going_resumed_.size());
  // The job of an ended client may have been cancelled: its request ends here.
  for (Request* request : going_resumed_) {
    take_back(*request);
    if (request->connection->closing) {
      release(*request);
    } else {
      step(*request);
    }
  }
  going_resumed_.clear();
}

// --- clients that do not read their answers ------------------------------------------------------

void Scheduler::wait_until_writable(Request& request) {
  Connection& connection = *request.connection;
  if (connection.closing) return release(request);
  const bool empty = connection.ring(request.ring()).backlog_bytes() == 0;
  if (empty && request.wanted_bytes == 0) {
    again_.push_back(&request);
    return;
  }
  stall(request);
  clients_.watch_backlog(connection);
}

void Scheduler::wait_until(Request& request, std::uint64_t monotonic_ns) {
  set_aside(request, Counted::by_none);
  times_.push_back({&request, monotonic_ns});
  ++request.connection->timed_count;
}

void Scheduler::stall(Request& request) {
  if (request.wanted_bytes != 0)
    services_.waiting_for_memory.fetch_add(1, std::memory_order_relaxed);
  set_aside(request, Counted::by_none);
  Connection& connection = *request.connection;
  connection.stalled[request.ring()].push(&request);
  ++connection.stalled_count;
  ++stalled_;
}

// A bounded number, since each may fill the ring again. A request that waits for memory does not
// block those behind it: they may hold some of it. While one begins, the connection's list has the
// earlier ones that still wait, which is where a cancel looks for the request that it names.
bool Scheduler::go_on_stalled(Connection& connection, std::uint32_t ring) {
  StalledRequests& stalled = connection.stalled[ring];
  StalledRequests behind = std::exchange(stalled, {});
  std::size_t gone = 0;
  while (!behind.empty()) {
    Request& request = *behind.pop();
    const bool full = gone >= kGoOnTogether || busy() >= 2 * kInFlight;
    if (full || !may_go_on(connection, request)) {
      stalled.push(&request);
      continue;
    }
    ++gone;
    --connection.stalled_count;
    --stalled_;
    take_back(request);
    no_longer_waits(request);
    if (request.offload == nullptr) {
      begin_in_place(request);
    } else {
      again_.push_back(&request);
    }
  }
  return gone != 0;
}

// It wants no memory any more, or there may be some.
void Scheduler::no_longer_waits(Request& request) {
  if (std::exchange(request.wanted_bytes, 0) != 0) {
    services_.waiting_for_memory.fetch_sub(1, std::memory_order_relaxed);
  }
}

// Whether the answer for which it is stalled can be made now.
bool Scheduler::may_go_on(Connection& connection, const Request& request) const {
  rings::ResponseRing& ring = connection.ring(request.ring());
  return ring.backlog_bytes() == 0 &&
         (request.wanted_bytes == 0 || ring.has_room(request.wanted_bytes) ||
          connection.share.allows(request.wanted_bytes));
}

bool Scheduler::is_kept_back(const Connection& connection) const {
  if (!may_stall(connection)) return true;
  return connection.peer_waits != 0 &&
         connection.account->peer_waits.load(std::memory_order_relaxed) >= kPeerWaitsMax;
}

// Whether its next request may be taken, though it may have to stall.
bool Scheduler::may_stall(const Connection& connection) const {
  const std::uint32_t has =
      connection.stalled_count + connection.timed_count + connection.peer_waits;
  if (has < 16 || aside() < kStalledMaxOfAll / 2) [[likely]]
    return has < kStalledMax;
  return has < kStalledMaxOfAll / clients_.size();
}

// --- what counts as in flight --------------------------------------------------------------------

// Fast path for requests of clients themselves.
void Scheduler::count_in(Request& request) {
  Connection& connection = *request.connection;
  const std::uint8_t hops = request.hops();
  request.counted = Counted::by_both;
  if (hops == 0) [[likely]] {
    ++busy_[0];
    ++connection.counted[0];
    return;
  }
  ++busy_[hops];
  ++connection.counted[hops];
  ++connection.taken[hops];
}

void Scheduler::count_out(Request& request) {
  Connection& connection = *request.connection;
  const std::uint8_t hops = request.hops();
  if (hops == 0) [[likely]] {
    if (request.counted == Counted::by_both) --busy_[0];
    if (request.counted != Counted::by_none) --connection.counted[0];
    return;
  }
  const bool kept = planted(Bug::hop_place_kept);
  if (request.counted == Counted::by_both && !kept) --busy_[hops];
  if (request.counted != Counted::by_none) --connection.counted[hops];
  --connection.taken[hops];
}

void Scheduler::set_aside(Request& request, Counted how) {
  ESPALIER_ASSERT(request.counted == Counted::by_both && how != Counted::by_both);
  request.counted = how;
  --busy_[request.hops()];
  if (how == Counted::by_none) --request.connection->counted[request.hops()];
}

void Scheduler::take_back(Request& request) {
  ESPALIER_ASSERT(request.counted != Counted::by_both);
  if (request.counted == Counted::by_none) ++request.connection->counted[request.hops()];
  request.counted = Counted::by_both;
  ++busy_[request.hops()];
}

void Scheduler::begin_peer_wait(Request& request, PrincipalAccount& account) {
  set_aside(request, Counted::by_none);
  if (request.hops() != 0) return;  // these are bounded for each session
  account.peer_waits.fetch_add(1, std::memory_order_relaxed);
  ++request.connection->peer_waits;
  ++peer_waits_;
}

void Scheduler::end_peer_wait(Request& request, PrincipalAccount& account) {
  take_back(request);
  if (request.hops() != 0) return;
  account.peer_waits.fetch_sub(1, std::memory_order_relaxed);
  --request.connection->peer_waits;
  --peer_waits_;
}

bool Scheduler::has_place(const Connection& connection, std::uint8_t hops) const {
  if (planted(Bug::hops_share_places)) return busy_[1] + busy_[2] < kHopPlaces;
  return busy(hops) < kHopPlaces || connection.counted[hops] == 0;
}

// Begins requests of other nodes as places become free: one of each session in its turn, in order
// of arrival.
bool Scheduler::go_on_in_places() {
  if (without_place_ == 0) [[likely]]
    return false;
  bool moved = false;
  const std::span<Connection* const> watched = clients_.watched();
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Connection& connection = *watched[(turns_ + i) % watched.size()];
    for (std::uint8_t hops = 1; hops <= wire::kHopsMax; ++hops) {
      if (connection.without_place[hops].empty() || !has_place(connection, hops)) continue;
      Request& request = *connection.without_place[hops].pop();
      --connection.without_place_count;
      --without_place_;
      take_back(request);
      begin(request);
      moved = true;
    }
  }
  return moved;
}

bool Scheduler::withdraw(Request& request) {
  Connection& connection = *request.connection;
  const auto take_out_of = [&request](StalledRequests& waiting) {
    bool found = false;
    waiting.sort_out([&](Request* each) {
      if (each != &request) return waiting.push(each);
      found = true;
    });
    return found;
  };
  if (take_out_of(connection.without_place[request.hops()])) {
    --connection.without_place_count;
    --without_place_;
  } else if (take_out_of(connection.stalled[request.ring()])) {
    --connection.stalled_count;
    --stalled_;
  } else {
    return false;
  }
  take_back(request);
  return true;
}

// Requests that wait for the client itself, for a time, or for a lane are held by no other thread:
// they end here.
void Scheduler::drop_waiting(Connection& connection) {
  stalled_ -= std::exchange(connection.stalled_count, 0);
  for (StalledRequests& of_ring : connection.stalled) {
    of_ring.sort_out([this](Request* request) {
      no_longer_waits(*request);
      release(*request);
    });
  }
  std::erase_if(times_, [&](const WaitsForTime& waiting) {
    if (waiting.request->connection != &connection) return false;
    --connection.timed_count;
    release(*waiting.request);
    return true;
  });
  without_place_ -= std::exchange(connection.without_place_count, 0);
  for (StalledRequests& of_hops : connection.without_place) {
    of_hops.sort_out([this](Request* request) { release(*request); });
  }
  drop_undurable(connection);
  for (const OfKind& each : executors_) each.executor->drop(connection);
}

// --- for offloads --------------------------------------------------------------------------------

Next Call::again() {
  scheduler_.again_.push_back(&request_);
  return {};
}

Next Call::writable() {
  scheduler_.wait_until_writable(request_);
  return {};
}

Next Call::helper(std::function<void()> work) {
  return helper_steps([work = std::move(work)](StepContext&) {
    work();
    return JobStep::done;
  });
}

std::unique_ptr<HelperJob> Call::job_of(std::function<JobStep(StepContext&)> work) {
  return std::make_unique<RequestJob>(
      std::move(work),
      [&scheduler = scheduler_, &request = request_] { scheduler.resume(request); }, request_);
}

Next Call::helper_steps(std::function<JobStep(StepContext&)> work, std::uint64_t deadline_ns) {
  const auto begun = scheduler_.hand_over(request_, job_of(std::move(work)), deadline_ns);
  return begun ? Next() : fail(begun.error());
}

Next Call::helper_steps_when_possible(std::function<JobStep(StepContext&)> work) {
  constexpr std::uint64_t kMomentNs = 1'000'000;
  const auto begun =
      scheduler_.hand_over(request_, job_of(std::move(work)), JobOptions::kNoDeadline);
  return begun ? Next() : at(base::monotonic_ns() + kMomentNs);
}

Next Call::at(std::uint64_t monotonic_ns) {
  scheduler_.wait_until(request_, monotonic_ns);
  return {};
}

}  // namespace espalier::offload
