// SPDX-License-Identifier: Apache-2.0
// The request scheduler of one worker. Each turn it takes requests from its clients' rings, keeps
// up to 256 in flight, batches their walks, and calls the step of each when what it waits for is
// ready, out of order [RAMBDA §III-C, Honeycomb §4].
//
// Fairness. Rings take turns, each with a burst; no ring has more in flight than its share of the
// places. A long request yields after a bounded step and continues behind the others. A request
// that waits for its turn in a kind's executor, or for helpers, does not count as in flight, so it
// blocks no others.
//
// Deadlock avoidance. Requests that come over other nodes have places that clients cannot take, per
// number of hops, and so have their waits for other nodes: nodes that ask each other cannot wait in
// a cycle (docs/design/peers.md). A no-op takes no place: it only asks whether the node is alive.
// Each session has one of these places to itself, and takes turns for the rest: a client that
// pretends to be a node blocks no node.
//
// Flow control. A request whose response ring is full is stalled until its client has read. It does
// not count as in flight: neither other clients nor the client's other rings wait for it. The same
// holds for a request that waits for a time, such as a query that has no place to run in yet, or
// for a peer. Stalled requests are bounded per client (client_table.hpp), waits for peers per
// principal.
//
// Out of memory. A request that meets an allocation failure is answered with out_of_memory: its
// offload throws std::bad_alloc before it changes anything, and guarded() answers. The scheduler's
// own lists have room for a request before it is taken. If even an answer cannot be deferred, its
// client's connection ends, and no other.
//
// Durability. Where effects are logged, an answer that shows what a crash could lose waits until
// that is durable (docs/design/durability.md), in a queue of its connection after its request is
// freed. The scheduler checks this queue when the durable mark has risen, and sleeps until then if
// it is idle.
//
// Invariants
// - Nothing here blocks. A wait (for another writer's version, a full response ring, another
//   thread) is checked again in a later turn.
// - No byte of a client's memory is trusted, or read twice.
// - A client's end leaves nothing in flight: its requests finish, and their answers are dropped.
//
// Thread: one at a time, except for what a helper calls when its work is done.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/call.hpp"
#include "engine/durations.hpp"
#include "engine/executor.hpp"
#include "engine/node_parts.hpp"
#include "engine/registry.hpp"
#include "wire/ring.hpp"

namespace espalier::offload {

class ClientTable;
struct WaitingAnswer;

struct SchedulerOptions {
  std::uint32_t in_flight_max = 256;  ///< of one connection
  std::uint32_t shard = 0;            ///< this scheduler's number among counters
};

/// Counters of one scheduler. Each is exact; together they are no snapshot.
struct SchedulerCounts {
  /// An offload's index in the counters; a program's own offloads share the first.
  [[nodiscard]] static constexpr std::size_t place_of(std::uint8_t offload) {
    return offload < wire::kOffloadIds ? offload : 0;
  }
  std::atomic<std::uint64_t> requests[wire::kOffloadIds]{};
  std::atomic<std::uint64_t> refused{0};  ///< answered with an error
  std::atomic<std::uint32_t> in_flight{0};
  /// By offload, of about one request in 64: from the start of its offload to its answer.
  Durations durations[wire::kOffloadIds];
};

class Scheduler final {
 public:
  static constexpr std::uint32_t kInFlight = 256;  ///< of one scheduler
  /// Stalled requests of one client: as many as all its threads may have sent.
  static constexpr std::uint32_t kStalledMax = wire::kResponseRingsMax * 256;
  /// And of all clients together, shared equally: bounds the memory of clients that never read.
  static constexpr std::uint32_t kStalledMaxOfAll = 65536;
  /// Requests of one principal that may wait for peers, on all schedulers of the node. At the
  /// limit, no more requests are taken from its connections that have such a request.
  static constexpr std::uint32_t kPeerWaitsMax = 1024;
  /// Places of requests for each number of hops; one for each session, if there are more sessions.
  static constexpr std::uint32_t kHopPlaces = 64;
  /// `services` and `clients` outlive it.
  Scheduler(Services& services, ClientTable& clients, const SchedulerOptions& options);
  /// Requires: all connections are removed, and turn() was called until idle().
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Does a bounded amount of work. Returns whether there was any.
  bool turn();
  /// Whether a turn would find work. For a thread that has announced that it sleeps, as its last
  /// check.
  bool has_news();
  /// How long the thread may sleep before a timed request must continue.
  [[nodiscard]] std::uint64_t sleep_limit_ns() const;
  /// Takes no more requests; those in flight finish.
  void take_no_more() { taking_ = false; }
  /// Ends a connection: it is destroyed when it has nothing in flight.
  void remove(Connection& connection);
  /// Whether nothing is in flight and nothing waits.
  [[nodiscard]] bool idle() const {
    return free_.size() == places_.size() && waiting_answers_ == 0;
  }
  /// Answers that wait for their records, after their requests were freed.
  [[nodiscard]] std::uint32_t waiting_answers() const { return waiting_answers_; }
  /// Requests that occupy memory here. For audits.
  [[nodiscard]] std::size_t in_flight() const { return places_.size() - free_.size(); }
  /// Requests with so many hops that have a place now. For audits: 0 when idle.
  [[nodiscard]] std::uint32_t places_taken(std::uint8_t hops) const { return busy_[hops]; }
  [[nodiscard]] ClientTable& clients() { return clients_; }
  [[nodiscard]] const SchedulerCounts& counts() const { return counts_; }
  /// Wakes the thread that runs the scheduler; set by its owner, called by any thread. Must not
  /// call the scheduler.
  std::function<void()> wake = [] {};

  // --- for executors -----------------------------------------------------------------------------

  /// The request of this index.
  [[nodiscard]] Request& place(std::uint64_t index) { return *places_[index]; }
  /// Calls its step. `from_executor`: the executor's result (Call::from_executor); null: it waited
  /// for something else. `waits_for`: as Call::waits_for().
  void go_on_with(Request& request, const void* from_executor = nullptr,
                  std::uint64_t waits_for = 0) noexcept;
  /// Runs `work` for a request, and answers out_of_memory if it throws std::bad_alloc.
  template <class Work>
  void guarded(Request& request, const Work& work) noexcept {
    try {
      work();
    } catch (const std::bad_alloc&) {
      answer_no_memory(request);
    }
  }
  void fail(Request& request, Error error, std::string_view words = {},
            std::uint64_t waits_for = 0);
  /// It waits for its turn in an executor, or for a peer: it does not count as in flight until
  /// take_back().
  void set_aside(Request& request, Counted how);
  void take_back(Request& request);
  /// Whether durable records release versions: requests that wait for a release then continue when
  /// the executor is asked (Executor::go_on_released), else in each turn.
  [[nodiscard]] bool releases_by_records() const;
  /// Whether a write that found no room for its record may wait for some (Call::with_room).
  [[nodiscard]] bool may_wait_for_room() const;
  void begin_again_with_room(Request& request);
  /// Something waits for a release from now on. Call it before the last check.
  void expect_release();
  /// A client's request begins, or ends, to wait for its posts to peers. It counts on this account,
  /// which must live until then.
  void begin_peer_wait(Request& request, PrincipalAccount& account);
  void end_peer_wait(Request& request, PrincipalAccount& account);
  /// Frees a request whose client is gone. Requires: it is in no list.
  void release(Request& request);
  [[nodiscard]] PrincipalRef account_of(const Request& request);

 private:
  friend class Call;  // for offloads

  bool take_requests();
  bool take_executor_turns();
  bool take_from(Connection& connection, std::uint32_t share);
  void take(Request& request, Connection& connection, std::uint8_t hops);
  [[nodiscard]] std::uint32_t room_for_clients(const Connection& connection,
                                               std::uint32_t share) const;
  [[nodiscard]] std::uint32_t share_of_each() const;
  [[nodiscard]] static bool has_room_for_hops(const Connection& connection, std::uint8_t hops);
  /// Whether the client's further requests stay in the ring until some of its waiting requests end.
  [[nodiscard]] bool is_kept_back(const Connection& connection) const;
  [[nodiscard]] static std::uint8_t next_hops(const Connection& connection);
  [[nodiscard]] bool has_place(const Connection& connection, std::uint8_t hops) const;
  void begin_in_place(Request& request);
  bool go_on_in_places();
  /// A free place; null: no memory for one now.
  [[nodiscard]] Request* free_place() noexcept;
  void add_place();
  /// Clients' requests in flight, except those that are stalled, or wait for a time, a lane, a
  /// release, a peer, or helpers.
  [[nodiscard]] std::uint32_t busy() const { return busy(0); }
  [[nodiscard]] std::uint32_t busy(std::uint8_t hops) const { return busy_[hops]; }
  void count_in(Request& request);
  void count_out(Request& request);
  void begin(Request& request);
  [[nodiscard]] bool check(Request& request);
  void step(Request& request) noexcept { go_on_with(request); }
  void answer_no_memory(Request& request) noexcept;
  void wipe_secret(Request& request);
  void begin_timing(Request& request);
  void end_timing(Request& request);
  void publish_in_flight();

  void wait_until_writable(Request& request);
  void wait_until(Request& request, std::uint64_t monotonic_ns);
  /// Errors: out_of_memory (its client has too many jobs), and nothing was changed.
  Result<void> hand_over(Request& request, std::unique_ptr<HelperJob> job,
                         std::uint64_t deadline_ns);
  [[nodiscard]] ClientId helper_client_of(const Request& request);
  void resume(Request& request);
  void answer(Request& request, const wire::ResponseHeader& header,
              std::initializer_list<std::string_view> payload, std::uint64_t waits_for = 0);
  void answer_now(Request& request, const wire::ResponseHeader& header,
                  std::initializer_list<std::string_view> payload);
  void send_answer(Request& request, const wire::ResponseHeader& header,
                   std::initializer_list<std::string_view> payload);
  void release_now(Request& request);

  // scheduler_durable.cpp
  [[nodiscard]] std::uint64_t record_before_answer(const Request& request,
                                                   const wire::ResponseHeader& header) const;
  struct AnswerWaits;
  [[nodiscard]] AnswerWaits waits_of(const Request& request, const wire::ResponseHeader& header,
                                     std::uint64_t version) const;
  void keep_answer(Request& request, const AnswerWaits& waits, const wire::ResponseHeader& header,
                   std::initializer_list<std::string_view> payload);
  [[nodiscard]] bool keep_without_request(Request& request, const AnswerWaits& waits,
                                          const wire::ResponseHeader& header,
                                          std::initializer_list<std::string_view> payload);
  void wait_for_release(Request& request);
  [[nodiscard]] bool something_waits() const;
  [[nodiscard]] bool may_sleep_until_durable();
  [[nodiscard]] std::uint64_t release_limit_ns() const;
  bool look_at_durable();
  bool answer_durable();
  void answer_of(Connection& connection);
  void give(Connection& connection, const WaitingAnswer& answer, bool lost);
  void end_waiting(Connection& connection);
  bool answer_requests();
  [[nodiscard]] bool is_answered(const Request& request) const;
  void drop_undurable(Connection& connection);
  [[nodiscard]] std::string why_not_durable() const noexcept;
  void cancel(const Request& asks, std::uint32_t tag);
  [[nodiscard]] bool check_access(Request& request);
  /// Returns false.
  bool refuse_access(Request& request, const Error& why);
  void audit_refusal(const Request& request, const Error& why) noexcept;
  void audit_act(const Request& request, const wire::ResponseHeader& header,
                 std::initializer_list<std::string_view> payload) noexcept;
  [[nodiscard]] bool response_fits(Request& request, std::uint64_t bytes);

  bool go_on();
  bool go_on_timed();
  void take_resumed();

  void stall(Request& request);
  bool go_on_stalled(Connection& connection, std::uint32_t ring);
  void no_longer_waits(Request& request);
  [[nodiscard]] bool may_go_on(Connection& connection, const Request& request) const;
  [[nodiscard]] bool may_stall(const Connection& connection) const;
  [[nodiscard]] std::size_t aside() const {
    return stalled_ + times_.size() + answered_ + peer_waits_;
  }
  void drop_waiting(Connection& connection);
  /// Removes a request that has not begun from its wait. False: it waits nowhere.
  [[nodiscard]] bool withdraw(Request& request);

  /// The executor of a kind.
  struct OfKind {
    const ExecutorKind* kind;
    std::unique_ptr<Executor> executor;
  };
  [[nodiscard]] static std::vector<OfKind> make_executors(Scheduler& scheduler, Services& services,
                                                          const SchedulerOptions& options);
  [[nodiscard]] Executor& executor(const ExecutorKind& kind) const {
    std::size_t at = 0;
    while (executors_[at].kind != &kind) ++at;
    return *executors_[at].executor;
  }

  struct WaitsForTime {
    Request* request;
    std::uint64_t ns;
  };
  struct Undurable;  // answers and requests that wait for durability

  Services& services_;
  ClientTable& clients_;
  const SchedulerOptions options_;
  const OffloadTable& offloads_;
  catalog::Catalog& catalog_;
  const std::vector<OfKind> executors_;
  std::uint32_t asking_ = 0;  // executors that have work: a bit each, in their order
  TypedSlots<SchedulerPart> parts_;
  std::size_t first_ = 0;  // of the watched clients, whose turn is next
  std::vector<std::unique_ptr<Request>> places_;
  std::vector<Request*> free_;
  std::vector<Request*> again_;
  std::vector<Request*> going_on_;  // in this turn
  std::vector<WaitsForTime> times_;
  const std::unique_ptr<Undurable> undurable_;
  std::uint32_t waiting_answers_ = 0;  // whose requests were freed
  std::uint32_t answered_ = 0;         // requests that keep their answers
  HandlerState::Spares spare_states_;
  bool taking_ = true;
  bool took_ = false;  // requests, in the last turn
  std::uint32_t turns_ = 0;
  std::uint32_t until_timed_ = 1;  // requests until the next sample
  std::uint32_t timed_ = 0;
  std::array<std::uint32_t, wire::kHopsMax + 1> busy_{};
  std::uint32_t without_place_ = 0;  // requests that have not begun
  std::uint32_t handed_over_ = 0;
  std::uint32_t stalled_ = 0;     // of all clients
  std::uint32_t peer_waits_ = 0;  // clients' requests

  std::mutex mutex_;  // guards resumed_
  std::vector<Request*> resumed_;
  std::vector<Request*> going_resumed_;  // in this turn
  std::atomic<bool> has_resumed_{false};
  SchedulerCounts counts_;
};

}  // namespace espalier::offload
