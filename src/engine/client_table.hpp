// SPDX-License-Identifier: Apache-2.0
// The clients of one worker: their connections, which request rings to poll, the sending of
// answers, and the end of connections. Does not interpret requests.
//
// Polling: with few rings, each is polled every turn. With many, only recently active rings are
// polled, and the others ring their doorbells. A sweep at a bounded interval polls every ring,
// since a doorbell is a hint.
//
// Invariants
// - A client that does not read its answers delays no other: its deferred messages are bounded, and
//   its connection is ended when others need the memory and it makes no progress.
// - No connection is destroyed while it has requests in flight.
//
// Thread: one at a time; the counts from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/connection.hpp"
#include "engine/services.hpp"
#include "engine/serving_gate.hpp"
#include "rings/doorbells.hpp"

namespace espalier::offload {

struct ClientTableOptions {
  std::uint64_t response_bytes_max = std::uint64_t{4} << 20;  ///< deferred for one response ring
  /// Up to so many rings, each is polled every turn: that is faster than doorbells.
  std::size_t watch_all = 16;
  std::uint64_t sweep_ns = 10'000'000;  ///< interval between sweeps of all rings
  /// A client without progress for so long is ended when others need its memory.
  std::uint64_t stuck_ns = 30'000'000'000;
};

/// Counters of one worker's clients. Each is exact; together they are no snapshot.
struct ClientCounts {
  std::atomic<std::uint64_t> sweeps_found{0};  ///< rings with requests that no doorbell announced
  std::atomic<std::uint64_t> wakes{0};         ///< of sleeping clients
  std::atomic<std::uint64_t> stuck_ended{0};   ///< connections ended to free memory for others
  std::atomic<std::uint32_t> connections{0};
};

class ClientTable {
 public:
  /// While requests arrive: how many turns between polls of doorbells and checks for quiet rings.
  static constexpr std::uint32_t kTurnsToListen = 4;

  /// `doorbells` and `services` outlive it.
  ClientTable(Services& services, rings::Doorbells& doorbells, const ClientTableOptions& options)
      : services_(services),
        gate_(services.parts.find<ServingGate>()),
        doorbells_(doorbells),
        options_(options) {}
  ClientTable(const ClientTable&) = delete;
  ClientTable& operator=(const ClientTable&) = delete;

  // --- connecting and closing --------------------------------------------------------------------

  /// Reserves memory for a connection that is about to be added. Afterwards neither adding it nor
  /// serving it allocates from the heap, except for deferred answers. Errors: std::bad_alloc.
  void expect(const Connection& connection);
  /// Serves a connection from now on. Connections without an account share one. Errors:
  /// std::bad_alloc.
  void add(std::unique_ptr<Connection> connection);
  /// Reads no more requests from it and sends it nothing. Destroys it when it has nothing in
  /// flight: immediately, or in end_closed().
  void close(Connection& connection);
  /// One of its requests has left the scheduler.
  void count_out(Connection& connection) {
    if (--connection.in_flight == 0 && connection.closing) ended_.push_back(&connection);
  }
  /// Destroys closed connections that have nothing in flight any more.
  void end_closed();
  /// Ends a connection that broke the protocol: reads nothing more from it, and calls on_broken.
  void break_off(Connection& connection);
  /// The gate that withholds the node's answers; null: none.
  [[nodiscard]] const ServingGate* gate() const { return gate_; }
  /// Called once for each connection that broke the protocol; its owner must remove it.
  std::function<void(Connection&)> on_broken;
  /// Called for each connection that has ended, before it is destroyed.
  std::function<void(Connection&)> on_ended;

  // --- polling of request rings ------------------------------------------------------------------

  /// Polls the doorbells of unwatched rings; every few turns stops watching quiet ones.
  void listen(std::uint32_t turn);
  /// Connections whose rings are polled each turn.
  [[nodiscard]] std::span<Connection* const> watched() const { return watched_; }
  /// Polls its ring each turn until it is quiet again.
  void watch(Connection& connection);
  /// Polls every ring, whatever its doorbell says. Returns whether one has a request. Cost: a slot
  /// for each ring.
  bool sweep();
  /// Periodic maintenance: if it is due, sweeps and ends stuck clients. Returns whether it was due.
  bool maintain();
  /// Replaces these intervals of the options from now on.
  void set_times(std::uint64_t sweep_ns, std::uint64_t stuck_ns) {
    options_.sweep_ns = sweep_ns;
    options_.stuck_ns = stuck_ns;
  }
  [[nodiscard]] std::size_t size() const { return connections_.size(); }

  // --- sending of answers ------------------------------------------------------------------------

  /// Sends one message, or defers it if the ring is full. Drops it if the client is closing.
  /// Errors: std::bad_alloc, and nothing was sent. Inlined, since each request's answer takes this
  /// path.
  [[gnu::always_inline]] void send(Connection& connection, std::uint32_t ring,
                                   wire::ResponseKind kind, std::uint32_t tag,
                                   const wire::ResponseHeader& header,
                                   std::initializer_list<std::string_view> payload) {
    if (connection.closing || is_withheld(connection)) return;
    rings::ResponseRing& to = connection.ring(ring);
    to.send(kind, tag, header, payload);
    touch(to);
    if (to.backlog_bytes() != 0) [[unlikely]]
      watch_backlog(connection);
  }
  /// Sends a message that was promised to the ring.
  void send_promised(Connection& connection, std::uint32_t ring, wire::ResponseKind kind,
                     std::uint32_t tag, const wire::ResponseHeader& header,
                     std::vector<std::byte> message);
  /// Whether a message of so many bytes, header included, can be sent or deferred now.
  enum class Fit : std::uint8_t { yes, ring_is_full, memory_is_short };
  [[nodiscard]] Fit fits(Connection& connection, std::uint32_t ring, std::uint64_t bytes);
  /// Whether any client has deferred answers or stalled requests.
  [[nodiscard]] bool waits_for_clients() const { return !backlogged_.empty(); }
  /// Flushes the connection each turn, until it has no backlog.
  void watch_backlog(Connection& connection);
  /// Writes deferred messages as far as the rings have room, and calls `go_on(connection, ring)`,
  /// which resumes stalled requests and returns whether any went on. Returns whether anything
  /// moved.
  template <class GoOn>
  bool flush_backlogs(const GoOn& go_on);
  /// Wakes sleeping clients that have new messages.
  void wake_readers();

  [[nodiscard]] const ClientCounts& counts() const { return counts_; }

 private:
  void unwatch_quiet();
  bool flush(Connection& connection, std::uint32_t ring);
  [[nodiscard]] bool has_backlog(const Connection& connection) const;
  void touch(rings::ResponseRing& ring) {
    if (!ring.touch()) touched_.push_back(&ring);
  }
  // The connection's end informs the client that it gets no answer. A part of an answer is withheld
  // as well, since it shows what was read.
  [[nodiscard]] bool is_withheld(Connection& connection) {
    if (gate_ == nullptr || gate_->is_open()) [[likely]]
      return false;
    break_off(connection);
    return true;
  }
  void end(Connection& connection);
  void end_the_stuck();
  [[nodiscard]] bool is_stuck(Connection& connection) const;

  Services& services_;
  const ServingGate* const gate_;  // null: the node is in no chain
  rings::Doorbells& doorbells_;
  ClientTableOptions options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> by_doorbell_;
  std::vector<Connection*> watched_;
  std::vector<Connection*> backlogged_;
  std::vector<rings::ResponseRing*> touched_;
  std::size_t response_rings_ = 0;  // of all connections
  std::vector<Connection*> ended_;
  std::uint64_t now_ns_ = 0;  // cached; slightly stale
  std::uint64_t next_sweep_ns_ = 0;
  std::uint64_t refusals_seen_ = 0;
  ClientCounts counts_;
};

template <class GoOn>
bool ClientTable::flush_backlogs(const GoOn& go_on) {
  if (backlogged_.empty()) return false;
  bool moved = false;
  std::erase_if(backlogged_, [&](Connection* connection) {
    for (std::uint32_t ring = 0; ring < connection->layout().response_rings; ++ring) {
      moved = flush(*connection, ring) || moved;
      moved = go_on(*connection, ring) || moved;
    }
    connection->backlogged = connection->stalled_count != 0 || has_backlog(*connection);
    return !connection->backlogged;
  });
  return moved;
}

}  // namespace espalier::offload
