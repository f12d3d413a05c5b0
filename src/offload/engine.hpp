// SPDX-License-Identifier: Apache-2.0
// The engine: one core's work beside the memory. It takes requests from the rings of its clients by
// turns, keeps up to 256 of them in flight, runs their walks together, and answers each when it is
// done, in whatever order [RAMBDA §III-C, Honeycomb §4].
//
// Fairness: rings take turns, and each gives a burst at a time; no ring has more in flight than its
// share of what the engine holds. A request that would run long gives way after a step of bounded
// length and goes on behind the others.
//
// A request whose response ring is full waits aside until its client has read: it counts for
// nothing then, for others must not wait for that client, nor must those of the same client that
// answer to another ring. What may wait aside is bounded for each client.
//
// What never happens
// - Nothing here waits. What must wait (another writer's version, a full response ring, another
//   thread) is looked at again in a later turn.
// - No byte of a client's memory is believed, or read twice.
// - No client's end leaves anything in flight: its requests are finished, and their answers
//   dropped.
//
// Thread: one at a time, but for resume(), which any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "offload/connection.hpp"
#include "offload/doorbells.hpp"
#include "offload/durations.hpp"
#include "offload/registry.hpp"
#include "offload/request.hpp"
#include "offload/services.hpp"
#include "tree/host/host_executor.hpp"

namespace espalier::offload {

/// A map as one engine works on it.
struct ServedMap {
  ServedMap(std::shared_ptr<tree::MapCore> core_in, base::EpochSlot walks_slot,
            base::EpochSlot calls_slot, std::uint32_t shard);

  std::shared_ptr<tree::MapCore> core;
  tree::ThreadContext walks;  // of the engine below
  tree::ThreadContext calls;  // of what is done at once, meanwhile
  bool interleave_warm = false;
  std::unique_ptr<tree::MapExecutor> executor;
  std::uint32_t users = 0;  // requests in flight that name it
  bool walking = false;     // has walks in flight
};

struct EngineOptions {
  std::uint32_t in_flight_max = 256;                          ///< of one connection
  std::uint64_t response_bytes_max = std::uint64_t{4} << 20;  ///< put by for one response ring
  std::uint64_t sweep_ns = 10'000'000;  ///< every ring is looked at so often, come what may
  /// Who neither gave nor took anything for so long is ended when others need its memory.
  std::uint64_t stuck_ns = 30'000'000'000;
  std::uint32_t shard = 0;  ///< of counters: a number for each engine
};

/// Numbers about one engine. Each is right; they are not of one instant.
struct EngineCounts {
  /// Where an offload counts, by its number; all of a program's own count together, in the first.
  [[nodiscard]] static constexpr std::size_t place_of(std::uint8_t offload) {
    return offload < wire::kOffloadIds ? offload : 0;
  }
  std::atomic<std::uint64_t> requests[wire::kOffloadIds]{};
  std::atomic<std::uint64_t> refused{0};       ///< requests that were answered with an error
  std::atomic<std::uint64_t> sweeps_found{0};  ///< rings with requests that no doorbell announced
  std::atomic<std::uint64_t> wakes{0};         ///< of sleeping clients
  std::atomic<std::uint64_t> stuck_ended{0};   ///< connections, so that others had their memory
  std::atomic<std::uint32_t> in_flight{0};
  std::atomic<std::uint32_t> connections{0};
  /// By offload, of about one request in 64: from where its offload begins to its answer.
  Durations durations[wire::kOffloadIds];
};

class Engine final : private Handler {
 public:
  static constexpr std::uint32_t kInFlight = 256;  ///< of one engine
  /// While requests come, it looks for news of others, and at who is quiet, each so many turns.
  static constexpr std::uint32_t kTurnsToListen = 4;
  /// Requests of one client that may wait for it: as many as all its lanes may have sent.
  static constexpr std::uint32_t kStalledMax = wire::kResponseRingsMax * 256;
  /// And of all clients together, each its share: so much memory clients that never read may take.
  static constexpr std::uint32_t kStalledMaxOfAll = 65536;

  Engine(Services& services, Doorbells& doorbells, const EngineOptions& options);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Serves a connection from now on.
  void add(std::unique_ptr<Connection> connection);
  /// Takes no more requests from anybody; what is in flight goes on to its end.
  void take_no_more() { taking_ = false; }
  /// Ends a connection: it is destroyed when nothing of it is in flight.
  void remove(Connection& connection);
  /// Called with each connection that broke the protocol, once; its owner is to remove it.
  std::function<void(Connection&)> on_broken;
  /// Called with each connection that has ended, before it is destroyed.
  std::function<void(Connection&)> on_ended;

  /// Does a bounded amount of what there is to do. Returns whether there was anything.
  bool turn();
  /// Whether a turn would find something new. For whoever said that he sleeps, and looks once more.
  bool has_news();
  /// Looks into every ring, whatever its doorbell says. Returns whether a request lies in one.
  /// Cost: a line for each ring.
  bool sweep();
  /// Other times than those of its options, from now on.
  void set_times(std::uint64_t sweep_ns, std::uint64_t stuck_ns) {
    options_.sweep_ns = sweep_ns;
    options_.stuck_ns = stuck_ns;
  }
  /// Whether nothing is in flight and nothing waits.
  [[nodiscard]] bool idle() const { return free_.size() == places_.size(); }
  /// Whether answers are put by for clients that do not take them.
  [[nodiscard]] bool waits_for_clients() const { return !backlogged_.empty(); }
  [[nodiscard]] const EngineCounts& counts() const { return counts_; }
  /// Wakes the thread that runs the engine; set by its owner, called by any thread. Must not call
  /// the engine.
  std::function<void()> wake = [] {};

  // --- for offloads ------------------------------------------------------------------------------

  [[nodiscard]] Services& services() { return services_; }
  /// Of counters: this engine's own.
  [[nodiscard]] std::uint32_t shard() const { return options_.shard; }
  /// The map of this number; null: there is none. Looks beyond this engine's own.
  ServedMap* find_map(std::uint32_t id);
  /// Serves a map that somebody just made or found.
  Result<ServedMap*> serve(std::shared_ptr<tree::MapCore> core);
  /// Starts the request's walk: of `r.request`, whose tag is the engine's.
  void walk(Request& request, const tree::HeldVersion* held = nullptr,
            const tree::WriteCondition& condition = {});
  /// Calls the offload's resume() in the next turn.
  void again(Request& request) { again_.push_back(&request); }
  /// The same, when the map has released this version.
  void when_released(Request& request, std::uint64_t version);
  /// The same, when the client has taken what is put by for it, and there is memory for what
  /// response_fits() refused.
  void on_writable(Request& request);
  /// Runs `work` on another thread, then resume(). The request must not be touched meanwhile but
  /// by `work`.
  void hand_over(Request& request, std::function<void()> work);

  /// The last message to a request: frees its place. Of the header, flags, code and versions count.
  void answer(Request& request, const wire::ResponseHeader& header,
              std::initializer_list<std::string_view> payload = {});
  void fail(Request& request, Error error);
  /// A message before the last.
  void send_items(Request& request, const wire::ResponseHeader& header,
                  std::initializer_list<std::string_view> payload) {
    send(request, wire::ResponseKind::items, header, payload);
  }
  /// Memory for the items of a scan, empty: what an earlier scan left, if there is any.
  [[nodiscard]] std::vector<std::byte> items_memory();
  /// Gives it back, for another scan or to the system.
  void keep_memory(std::vector<std::byte> items);
  /// The request in flight of the same client and response ring that has this tag; null: none has.
  [[nodiscard]] Request* find_in_flight(const Request& request, std::uint32_t tag);
  /// Whether an answer with so many bytes of payload can be sent or put by for the client now. To
  /// be asked before each that may be long; if not, nothing may be sent before on_writable().
  [[nodiscard]] bool response_fits(Request& request, std::uint64_t bytes);

 private:
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  void send(Request& request, wire::ResponseKind kind, const wire::ResponseHeader& header,
            std::initializer_list<std::string_view> payload);
  void listen();
  void watch(Connection& connection);
  void unwatch_quiet();
  bool take_requests();
  bool take_from(Connection& connection, std::uint32_t burst);
  Request& free_place();
  /// Those in flight that do not wait for their clients.
  [[nodiscard]] std::size_t busy() const { return places_.size() - free_.size() - stalled_; }
  void begin(Request& request);
  [[nodiscard]] bool check(Request& request);
  void begin_timing(Request& request);
  void end_timing(Request& request);
  void break_off(Connection& connection);
  bool step_maps();
  bool go_on();
  bool flush_backlogs();
  bool flush_pending(Connection& connection);
  bool go_on_stalled(Connection& connection, std::uint32_t ring);
  void stall(Request& request);
  void no_longer_waits(Request& request);
  [[nodiscard]] bool may_stall(const Connection& connection) const;
  void wake_readers();
  void release(Request& request);
  void clear(RequestState& state);
  void end(Connection& connection);
  void drop_stalled(Connection& connection);
  [[nodiscard]] bool may_go_on(Connection& connection, const Request& request) const;
  void check_connection(Connection& connection);
  void end_the_stuck();
  [[nodiscard]] bool is_stuck(Connection& connection) const;
  void let_go_of_dropped_maps();
  void publish_in_flight();
  void maintain();
  void take_resumed();
  ResponseRing& ring_of(const Request& request) const;

  struct Waiting {
    Request* request;
    std::uint64_t version;
  };

  Services& services_;
  Doorbells& doorbells_;
  EngineOptions options_;
  const OffloadTable& offloads_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> by_doorbell_;
  std::vector<Connection*> watched_;
  std::size_t first_ = 0;  // of those watched, whose turn is next
  std::vector<std::unique_ptr<Request>> places_;
  std::vector<Request*> free_;
  std::unordered_map<std::uint32_t, std::unique_ptr<ServedMap>> maps_;
  std::uint32_t last_map_id_ = 0;  // and what find_map found for it
  ServedMap* last_map_ = nullptr;
  std::vector<ServedMap*> walking_;  // maps that have walks in flight
  std::vector<Request*> again_;
  std::vector<Request*> going_on_;  // of them, in this turn
  std::vector<Waiting> releases_;
  std::vector<Connection*> backlogged_;
  std::vector<std::vector<std::byte>> spare_items_;  // memory of scans that have ended
  std::vector<ResponseRing*> touched_;
  std::vector<Connection*> ended_;
  std::uint64_t now_ns_ = 0;  // not long ago
  std::uint64_t next_sweep_ns_ = 0;
  std::uint64_t refusals_seen_ = 0;
  bool taking_ = true;
  bool took_ = false;  // requests, in the last turn
  std::uint32_t turns_ = 0;
  std::uint32_t until_timed_ = 1;  // requests
  std::uint32_t timed_ = 0;
  std::uint32_t handed_over_ = 0;
  std::uint32_t stalled_ = 0;  // of all clients

  std::mutex mutex_;  // guards resumed_
  std::vector<Request*> resumed_;
  std::atomic<bool> has_resumed_{false};
  EngineCounts counts_;
};

}  // namespace espalier::offload
