// SPDX-License-Identifier: Apache-2.0
// The clients of one worker: their connections, whose ring has news, the way of answers back to
// them, and their ends. Knows nothing of what requests ask for.
//
// Whose ring has news: with few rings each is looked at every turn; with many, those that had
// something lately, while the others ring their doorbells. Every ring is looked at in a sweep at a
// bounded interval, for a doorbell is a hint.
//
// What never happens
// - No client that does not take its answers keeps another waiting: what is deferred for it is
//   bounded, and its connection is ended when others need the memory and it does nothing.
// - No connection is destroyed while something of it is in flight.
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
  /// With so few rings each is looked at every turn: that is quicker than by way of doorbells.
  std::size_t watch_all = 16;
  std::uint64_t sweep_ns = 10'000'000;  ///< every ring is looked at so often, come what may
  /// A client that neither gave nor took anything for so long is ended when others need its memory.
  std::uint64_t stuck_ns = 30'000'000'000;
};

/// Numbers about the clients of one worker. Each is right; they are not of one instant.
struct ClientCounts {
  std::atomic<std::uint64_t> sweeps_found{0};  ///< rings with requests that no doorbell announced
  std::atomic<std::uint64_t> wakes{0};         ///< of sleeping clients
  std::atomic<std::uint64_t> stuck_ended{0};   ///< connections, so that others had their memory
  std::atomic<std::uint32_t> connections{0};
};

class ClientTable {
 public:
  /// While requests come, it looks for news of others, and at who is quiet, each so many turns.
  static constexpr std::uint32_t kTurnsToListen = 4;

  /// `doorbells` and `services` outlive it.
  ClientTable(Services& services, rings::Doorbells& doorbells, const ClientTableOptions& options)
      : services_(services),
        gate_(services.parts.find<ServingGate>()),
        doorbells_(doorbells),
        options_(options) {}
  ClientTable(const ClientTable&) = delete;
  ClientTable& operator=(const ClientTable&) = delete;

  // --- beginnings and ends -----------------------------------------------------------------------

  /// Makes room for a connection that is about to be added, so that neither that nor anything that
  /// happens to it later asks the heap for memory, but for answers that are deferred.
  /// Errors: std::bad_alloc.
  void expect(const Connection& connection);
  /// Serves a connection from now on. One of which nobody has said whose it is shares an account
  /// with all such. Errors: std::bad_alloc.
  void add(std::unique_ptr<Connection> connection);
  /// Takes nothing from it any more, and gives it nothing. It is destroyed when nothing of it is in
  /// flight: at once, or by end_closed().
  void close(Connection& connection);
  /// One of its requests has left the scheduler.
  void count_out(Connection& connection) {
    if (--connection.in_flight == 0 && connection.closing) ended_.push_back(&connection);
  }
  /// Destroys what was closed and has nothing in flight any more.
  void end_closed();
  /// It broke the protocol: nothing more is taken from it, and its owner is told.
  void break_off(Connection& connection);
  /// What the node's answers are held to; null: nothing.
  [[nodiscard]] const ServingGate* gate() const { return gate_; }
  /// Called with each connection that broke the protocol, once; its owner is to remove it.
  std::function<void(Connection&)> on_broken;
  /// Called with each connection that has ended, before it is destroyed.
  std::function<void(Connection&)> on_ended;

  // --- whose ring has news -----------------------------------------------------------------------

  /// Looks at the doorbells of rings that are not watched; each few turns, stops watching the
  /// quiet.
  void listen(std::uint32_t turn);
  /// Those whose rings are looked at each turn.
  [[nodiscard]] std::span<Connection* const> watched() const { return watched_; }
  /// Its ring is one of these, until it is quiet again.
  void watch(Connection& connection);
  /// Looks into every ring, whatever its doorbell says. Returns whether a request lies in one.
  /// Cost: a slot for each ring.
  bool sweep();
  /// Sweeps, and ends clients that hold memory for nothing, if it is time. Returns whether it was.
  bool maintain();
  /// Other times than those of its options, from now on.
  void set_times(std::uint64_t sweep_ns, std::uint64_t stuck_ns) {
    options_.sweep_ns = sweep_ns;
    options_.stuck_ns = stuck_ns;
  }
  [[nodiscard]] std::size_t size() const { return connections_.size(); }

  // --- the way of answers ------------------------------------------------------------------------

  /// Sends one message, or defers it where the ring has no room. Dropped if the client is closing.
  /// Errors: std::bad_alloc, and nothing was sent. In line where it is called, for each request is
  /// answered by it.
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
  /// Sends what was promised to the ring.
  void send_promised(Connection& connection, std::uint32_t ring, wire::ResponseKind kind,
                     std::uint32_t tag, const wire::ResponseHeader& header,
                     std::vector<std::byte> message);
  /// Whether a message with so many bytes can be sent or deferred now, its header included.
  enum class Fit : std::uint8_t { yes, ring_is_full, memory_is_short };
  [[nodiscard]] Fit fits(Connection& connection, std::uint32_t ring, std::uint64_t bytes);
  /// Whether answers are deferred, or requests stalled, for clients that take nothing.
  [[nodiscard]] bool waits_for_clients() const { return !backlogged_.empty(); }
  /// Has a connection flushed each turn, until nothing of it waits.
  void watch_backlog(Connection& connection);
  /// Writes what there is room for, and asks `go_on(connection, ring)` what of that ring may go on;
  /// it returns whether anything did. Returns whether anything moved.
  template <class GoOn>
  bool flush_backlogs(const GoOn& go_on);
  /// Wakes clients that sleep and have got something.
  void wake_readers();

  [[nodiscard]] const ClientCounts& counts() const { return counts_; }

 private:
  void unwatch_quiet();
  bool flush(Connection& connection, std::uint32_t ring);
  [[nodiscard]] bool has_backlog(const Connection& connection) const;
  void touch(rings::ResponseRing& ring) {
    if (!ring.touch()) touched_.push_back(&ring);
  }
  // A client that hears nothing of what it asked for learns it from its connection's end. A part of
  // an answer shows what was read, as the whole does.
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
  std::uint64_t now_ns_ = 0;  // not long ago
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
