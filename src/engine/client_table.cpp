// SPDX-License-Identifier: Apache-2.0
#include "engine/client_table.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/own_counter.hpp"
#include "base/try_reserve.hpp"

namespace espalier::offload {
namespace {

// A ring that was quiet for so many turns is left to its doorbell; the second with many watched
// rings.
constexpr std::uint32_t kQuietTurns = 1024;
constexpr std::uint32_t kQuietTurnsOfMany = 4;
constexpr std::size_t kMany = 32;
constexpr std::uint32_t kUnannouncedMax = 3;

}  // namespace

// --- connecting and closing ----------------------------------------------------------------------

void ClientTable::expect(const Connection& connection) {
  const std::size_t connections = connections_.size() + 1;
  base::reserve_more(connections_, 1);
  for (std::vector<Connection*>* list : {&watched_, &backlogged_, &ended_}) {
    base::reserve_more(*list, connections - list->size());
  }
  const std::size_t rings = response_rings_ + connection.layout().response_rings;
  base::reserve_more(touched_, rings - touched_.size());
  if (by_doorbell_.size() <= connection.doorbell) by_doorbell_.resize(connection.doorbell + 1);
}

void ClientTable::add(std::unique_ptr<Connection> connection) {
  expect(*connection);
  if (!connection->account) connection->account = services_.principals.of("others");
  response_rings_ += connection->layout().response_rings;
  by_doorbell_[connection->doorbell] = connection.get();
  connection->moved_ns = now_ns_;
  connections_.push_back(std::move(connection));
  watch(*connections_.back());
  counts_.connections.store(static_cast<std::uint32_t>(connections_.size()),
                            std::memory_order_relaxed);
}

void ClientTable::break_off(Connection& connection) {
  if (std::exchange(connection.broken, true)) return;
  if (on_broken) on_broken(connection);
}

void ClientTable::close(Connection& connection) {
  ESPALIER_ASSERT(connection.stalled_count == 0);  // the scheduler has dropped them
  connection.closing = true;
  std::erase(watched_, &connection);
  std::erase(backlogged_, &connection);
  connection.backlogged = false;
  by_doorbell_[connection.doorbell] = nullptr;
  if (connection.in_flight == 0) {
    std::erase(ended_, &connection);
    end(connection);
  }
}

void ClientTable::end_closed() {
  while (!ended_.empty()) {
    Connection* const connection = ended_.back();
    ended_.pop_back();
    end(*connection);
  }
}

void ClientTable::end(Connection& connection) {
  ESPALIER_ASSERT(connection.closing && connection.in_flight == 0);
  if (on_ended) on_ended(connection);
  response_rings_ -= connection.layout().response_rings;
  const auto at = std::ranges::find_if(connections_,
                                       [&](const auto& each) { return each.get() == &connection; });
  std::swap(*at, connections_.back());
  connections_.pop_back();
  // A reader that sees the connection gone sees all its effects.
  counts_.connections.store(static_cast<std::uint32_t>(connections_.size()),
                            std::memory_order_release);
}

// --- polling of request rings --------------------------------------------------------------------

void ClientTable::listen(std::uint32_t turn) {
  if (watched_.size() > options_.watch_all && turn % kTurnsToListen == 0) unwatch_quiet();
  if (watched_.size() == connections_.size()) return;
  for (const std::uint32_t place : doorbells_.scan()) {
    if (place < by_doorbell_.size() && by_doorbell_[place] != nullptr) watch(*by_doorbell_[place]);
  }
}

void ClientTable::watch(Connection& connection) {
  if (connection.watched || connection.closing) return;
  connection.watched = true;
  connection.quiet_turns = 0;
  watched_.push_back(&connection);
}

// Clears the doorbell before the last check of the ring: what is written later rings it.
void ClientTable::unwatch_quiet() {
  const std::uint32_t quiet = watched_.size() > kMany ? kQuietTurnsOfMany : kQuietTurns;
  std::erase_if(watched_, [&](Connection* connection) {
    if (connection->quiet_turns < quiet || connection->distrusted ||
        connection->without_place_count != 0) {
      return false;
    }
    doorbells_.look(connection->doorbell);
    if (connection->requests.ready()) return false;
    connection->watched = false;
    return true;
  });
}

bool ClientTable::sweep() {
  now_ns_ = base::monotonic_ns();
  bool found = false;
  for (const auto& connection : connections_) {
    if (connection->closing || connection->broken || !connection->requests.ready()) continue;
    found = true;
    if (connection->watched) continue;
    // A doorbell that rang would be in the last scan. Once or twice it may be just about to ring.
    if (!doorbells_.rings(connection->doorbell)) {
      base::count_own(counts_.sweeps_found);
      connection->distrusted = ++connection->unannounced >= kUnannouncedMax;
    }
    watch(*connection);
  }
  return found;
}

bool ClientTable::maintain() {
  const std::uint64_t now = base::monotonic_ns();
  if (now < next_sweep_ns_) return false;
  next_sweep_ns_ = now + options_.sweep_ns;
  sweep();
  end_the_stuck();
  return true;
}

// When memory for messages runs short, ends the stuck connection that holds most of it: one for
// each sweep, which may be enough.
void ClientTable::end_the_stuck() {
  const std::uint64_t refusals = services_.refused_messages.load(std::memory_order_relaxed);
  const bool refused = std::exchange(refusals_seen_, refusals) != refusals;
  Connection* most = nullptr;
  for (const auto& connection : connections_) {
    if (connection->share.used() == 0 || !is_stuck(*connection)) continue;
    if (most == nullptr || connection->share.used() > most->share.used()) most = connection.get();
  }
  const bool short_of_memory =
      refused || services_.waiting_for_memory.load(std::memory_order_relaxed) != 0;
  if (most == nullptr || !short_of_memory) return;
  base::count_own(counts_.stuck_ended);
  break_off(*most);
}

// Whether it holds memory that only it can free, without progress for long. Requests that the node
// has not finished are not its fault.
bool ClientTable::is_stuck(Connection& connection) const {
  const std::uint64_t head = connection.requests.slots().head();
  if (std::exchange(connection.head_seen, head) != head) connection.moved_ns = now_ns_;
  if (connection.broken || connection.closing) return false;
  const bool holds = connection.requests.gathering() || has_backlog(connection);
  return holds && now_ns_ - connection.moved_ns >= options_.stuck_ns;
}

// --- sending of answers --------------------------------------------------------------------------

void ClientTable::send_promised(Connection& connection, std::uint32_t ring, wire::ResponseKind kind,
                                std::uint32_t tag, const wire::ResponseHeader& header,
                                std::vector<std::byte> message) {
  rings::ResponseRing& to = connection.ring(ring);
  if (connection.closing || is_withheld(connection)) return to.take_back(message.size());
  to.send_promised(kind, tag, header, std::move(message));
  watch_backlog(connection);
}

ClientTable::Fit ClientTable::fits(Connection& connection, std::uint32_t ring,
                                   std::uint64_t bytes) {
  rings::ResponseRing& to = connection.ring(ring);
  if (to.has_room(bytes)) return Fit::yes;
  const std::uint64_t deferred_bytes = to.backlog_bytes();
  if (deferred_bytes != 0 && deferred_bytes + bytes > options_.response_bytes_max) {
    return Fit::ring_is_full;
  }
  return connection.share.allows(bytes) ? Fit::yes : Fit::memory_is_short;
}

bool ClientTable::has_backlog(const Connection& connection) const {
  return std::ranges::any_of(connection.response_rings(), [](const rings::ResponseRing& ring) {
    return ring.backlog_bytes() != 0;
  });
}

void ClientTable::watch_backlog(Connection& connection) {
  if (connection.backlogged) return;
  connection.backlogged = true;
  backlogged_.push_back(&connection);
}

bool ClientTable::flush(Connection& connection, std::uint32_t ring) {
  rings::ResponseRing& to = connection.ring(ring);
  if (to.backlog_bytes() == 0 || !to.flush_pending()) return false;
  connection.moved_ns = base::monotonic_ns();
  touch(to);
  return true;
}

// Pairs with the client, which announces that it sleeps and then checks once more.
void ClientTable::wake_readers() {
  if (touched_.empty()) return;
  base::frequent_barrier(services_.asymmetric);
  for (rings::ResponseRing* ring : touched_) {
    ring->looked_after();
    if (!ring->reader_sleeps()) continue;
    ring->wake_reader();
    base::count_own(counts_.wakes);
  }
  touched_.clear();
}

}  // namespace espalier::offload
