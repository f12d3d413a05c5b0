// SPDX-License-Identifier: Apache-2.0
// The engine and its clients: whose rings are looked at, answers, beginnings and ends.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/own_counter.hpp"
#include "offload/engine.hpp"

namespace espalier::offload {
namespace {

// With so few rings each is looked at every turn: that is quicker than by way of doorbells.
constexpr std::size_t kWatchAll = 16;
// A ring that was quiet for so many turns is left to its doorbell; the second, with many watched.
constexpr std::uint32_t kQuietTurns = 1024;
constexpr std::uint32_t kQuietTurnsOfMany = 4;
constexpr std::size_t kMany = 32;
constexpr std::uint32_t kUnannouncedMax = 3;
constexpr std::size_t kSpares = 32;  // memory of scans that is kept for others
constexpr std::size_t kSpareBytes = std::size_t{128} << 10;
constexpr std::size_t kGoOnTogether = 16;  // requests of one ring, when it has room again

}  // namespace

// --- whose ring has news -------------------------------------------------------------------------

void Engine::listen() {
  if (watched_.size() > kWatchAll && turns_ % kTurnsToListen == 0) unwatch_quiet();
  if (watched_.size() == connections_.size()) return;
  for (const std::uint32_t place : doorbells_.scan()) {
    if (place < by_doorbell_.size() && by_doorbell_[place] != nullptr) watch(*by_doorbell_[place]);
  }
}

void Engine::watch(Connection& connection) {
  if (connection.watched || connection.closing) return;
  connection.watched = true;
  connection.quiet_turns = 0;
  watched_.push_back(&connection);
}

// The doorbell is seen before the ring is looked at for the last time: what is written from then on
// rings it.
void Engine::unwatch_quiet() {
  const std::uint32_t quiet = watched_.size() > kMany ? kQuietTurnsOfMany : kQuietTurns;
  std::erase_if(watched_, [&](Connection* connection) {
    if (connection->quiet_turns < quiet || connection->distrusted) return false;
    doorbells_.look(connection->doorbell);
    if (connection->requests.ready()) return false;
    connection->watched = false;
    return true;
  });
}

bool Engine::has_news() {
  listen();
  publish_in_flight();  // for whoever sleeps next may sleep for long
  // Nobody tells when a version is released.
  return has_resumed_.load(std::memory_order_acquire) || !releases_.empty() ||
         std::ranges::any_of(watched_, [this](const Connection* connection) {
           return !connection->broken && may_stall(*connection) && connection->requests.ready();
         });
}

bool Engine::sweep() {
  now_ns_ = base::monotonic_ns();
  bool found = false;
  for (const auto& connection : connections_) {
    if (connection->closing || connection->broken || !connection->requests.ready()) continue;
    found = true;
    if (connection->watched) continue;
    // Had it rung, the last scan would have told. Once or twice it may just be about to ring.
    if (!doorbells_.rings(connection->doorbell)) {
      base::count_own(counts_.sweeps_found);
      connection->distrusted = ++connection->unannounced >= kUnannouncedMax;
    }
    watch(*connection);
  }
  return found;
}

void Engine::publish_in_flight() {
  counts_.in_flight.store(static_cast<std::uint32_t>(places_.size() - free_.size()),
                          std::memory_order_relaxed);
}

void Engine::maintain() {
  publish_in_flight();
  const std::uint64_t now = base::monotonic_ns();
  if (now < next_sweep_ns_) return;
  next_sweep_ns_ = now + options_.sweep_ns;
  sweep();
  let_go_of_dropped_maps();
  end_the_stuck();
}

// Where memory for messages runs short, it is taken from who has most of it and does nothing: from
// one at each sweep, for that may be enough.
void Engine::end_the_stuck() {
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

// Whether it has memory that only it can free, and has done nothing about it for long. What we have
// not finished is not its fault.
bool Engine::is_stuck(Connection& connection) const {
  const std::uint64_t head = connection.requests.slots().head();
  if (std::exchange(connection.head_seen, head) != head) connection.moved_ns = now_ns_;
  if (connection.broken || connection.closing) return false;
  bool holds = connection.requests.gathering();
  for (std::uint32_t i = 0; i < connection.layout().response_rings && !holds; ++i) {
    holds = connection.ring(i).backlog_bytes() != 0;
  }
  return holds && now_ns_ - connection.moved_ns >= options_.stuck_ns;
}

// --- answers -------------------------------------------------------------------------------------

ResponseRing& Engine::ring_of(const Request& request) const {
  return request.connection->ring(request.header.ring & wire::kRingBits);
}

void Engine::send(Request& request, wire::ResponseKind kind, const wire::ResponseHeader& header,
                  std::initializer_list<std::string_view> payload) {
  ESPALIER_ASSERT(request.connection != nullptr);  // taken, and not answered yet
  Connection& connection = *request.connection;
  if (connection.closing) return;
  ResponseRing& ring = ring_of(request);
  ring.send(kind, request.header.tag, header, payload);
  if (!ring.touched) {
    ring.touched = true;
    touched_.push_back(&ring);
  }
  if (ring.backlog_bytes() != 0) [[unlikely]]
    check_connection(connection);
}

void Engine::answer(Request& request, const wire::ResponseHeader& header,
                    std::initializer_list<std::string_view> payload) {
  send(request, wire::ResponseKind::answer, header, payload);
  if (request.timed_since_ns != 0) [[unlikely]]
    end_timing(request);
  release(request);
}

void Engine::fail(Request& request, Error error) {
  base::count_own(counts_.refused);
  wire::ResponseHeader header{};
  header.code = static_cast<std::uint16_t>(error.code);
  char detail[sizeof error.detail];
  base::store_plain(reinterpret_cast<std::byte*>(detail), error.detail);
  answer(request, header, {{detail, sizeof detail}});
}

Request* Engine::find_in_flight(const Request& request, std::uint32_t tag) {
  const auto ring = [](const Request& each) { return each.header.ring & wire::kRingBits; };
  for (const auto& place : places_) {
    Request& other = *place;
    if (&other != &request && other.connection == request.connection && other.offload != nullptr &&
        other.header.tag == tag && ring(other) == ring(request)) {
      return &other;
    }
  }
  return nullptr;
}

bool Engine::response_fits(Request& request, std::uint64_t bytes) {
  ResponseRing& ring = ring_of(request);
  const std::uint64_t whole = bytes + wire::kResponseHeaderBytes;
  if (ring.has_room(whole)) return true;
  const std::uint64_t deferred_bytes = ring.backlog_bytes();
  if (deferred_bytes != 0 && deferred_bytes + whole > options_.response_bytes_max) return false;
  if (request.connection->share.allows(whole)) return true;
  request.wanted_bytes = whole;
  return false;
}

void Engine::release(Request& request) {
  Connection& connection = *request.connection;
  if (request.map != nullptr) --request.map->users;
  request.map = nullptr;
  request.connection = nullptr;
  request.message.clear();
  if (request.state) clear(*request.state);
  free_.push_back(&request);
  if (--connection.in_flight == 0 && connection.closing) ended_.push_back(&connection);
}

// A place that is free may stay so for long, and there may be thousands: it keeps nothing large.
// Not by `= {}`, which empties a vector or a string and leaves it its memory.
void Engine::clear(RequestState& state) {
  state.held.reset();
  std::string().swap(state.value);
  keep_memory(std::exchange(state.items, std::vector<std::byte>()));
}

void Engine::keep_memory(std::vector<std::byte> items) {
  if (items.capacity() == 0 || items.capacity() > kSpareBytes || spare_items_.size() >= kSpares) {
    return;
  }
  items.clear();
  spare_items_.push_back(std::move(items));
}

std::vector<std::byte> Engine::items_memory() {
  if (spare_items_.empty()) return {};
  std::vector<std::byte> items = std::move(spare_items_.back());
  spare_items_.pop_back();
  return items;
}

bool Engine::flush_backlogs() {
  bool moved = false;
  std::erase_if(backlogged_, [&](Connection* connection) {
    moved = flush_pending(*connection) || moved;
    bool left = connection->stalled_count != 0;
    for (std::uint32_t i = 0; i < connection->layout().response_rings && !left; ++i) {
      left = connection->ring(i).backlog_bytes() != 0;
    }
    connection->backlogged = left;
    return !left;
  });
  return moved;
}

// Writes what there is room for, and lets requests go on whose ring has nothing put by.
bool Engine::flush_pending(Connection& connection) {
  bool moved = false;
  for (std::uint32_t i = 0; i < connection.layout().response_rings; ++i) {
    ResponseRing& ring = connection.ring(i);
    if (ring.backlog_bytes() != 0 && ring.flush_pending()) {
      moved = true;
      connection.moved_ns = base::monotonic_ns();
      if (!ring.touched) touched_.push_back(&ring);
      ring.touched = true;
    }
    moved = go_on_stalled(connection, i) || moved;
  }
  return moved;
}

// Not all at once, for each may fill the ring again. Those that want memory which is not there do
// not keep others behind them: some of it may be theirs.
bool Engine::go_on_stalled(Connection& connection, std::uint32_t ring) {
  std::vector<Request*>& stalled = connection.stalled[ring];
  std::size_t gone = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < stalled.size(); ++i) {
    Request& request = *stalled[i];
    const bool full = gone >= kGoOnTogether || busy() >= 2 * kInFlight;
    if (full || !may_go_on(connection, request)) {
      stalled[kept++] = &request;
      continue;
    }
    ++gone;
    --connection.stalled_count;
    --stalled_;
    no_longer_waits(request);
    if (request.offload == nullptr) {
      begin(request);
    } else {
      again(request);
    }
  }
  stalled.resize(kept);
  return gone != 0;
}

// It wants no memory any more, or there may be some.
void Engine::no_longer_waits(Request& request) {
  if (std::exchange(request.wanted_bytes, 0) != 0) {
    services_.waiting_for_memory.fetch_sub(1, std::memory_order_relaxed);
  }
}

// Whether the answer for which it waits aside may now be made.
bool Engine::may_go_on(Connection& connection, const Request& request) const {
  ResponseRing& ring = ring_of(request);
  return ring.backlog_bytes() == 0 &&
         (request.wanted_bytes == 0 || ring.has_room(request.wanted_bytes) ||
          connection.share.allows(request.wanted_bytes));
}

// Whether its next request may be taken, though it may have to wait aside.
bool Engine::may_stall(const Connection& connection) const {
  const std::uint32_t has = connection.stalled_count;
  if (has < 16 || stalled_ < kStalledMaxOfAll / 2) [[likely]]
    return has < kStalledMax;
  return has < kStalledMaxOfAll / connections_.size();
}

// Lets a connection be looked at each turn, until nothing of it waits.
void Engine::check_connection(Connection& connection) {
  if (connection.backlogged) return;
  connection.backlogged = true;
  backlogged_.push_back(&connection);
}

void Engine::stall(Request& request) {
  if (request.wanted_bytes != 0)
    services_.waiting_for_memory.fetch_add(1, std::memory_order_relaxed);
  // It may have to wait for long.
  if (request.state) keep_memory(std::exchange(request.state->items, std::vector<std::byte>()));
  Connection& connection = *request.connection;
  connection.stalled[request.header.ring & wire::kRingBits].push_back(&request);
  ++connection.stalled_count;
  ++stalled_;
}

// The other half stands in the client: it says that it sleeps, and then looks once more.
void Engine::wake_readers() {
  base::frequent_barrier(services_.asymmetric);
  for (ResponseRing* ring : touched_) {
    ring->touched = false;
    if (!ring->reader_sleeps()) continue;
    ring->wake_reader();
    base::count_own(counts_.wakes);
  }
  touched_.clear();
}

// --- beginnings and ends -------------------------------------------------------------------------

void Engine::add(std::unique_ptr<Connection> connection) {
  if (by_doorbell_.size() <= connection->doorbell) by_doorbell_.resize(connection->doorbell + 1);
  by_doorbell_[connection->doorbell] = connection.get();
  connection->moved_ns = now_ns_;
  connections_.push_back(std::move(connection));
  watch(*connections_.back());
  counts_.connections.store(static_cast<std::uint32_t>(connections_.size()),
                            std::memory_order_relaxed);
}

void Engine::break_off(Connection& connection) {
  connection.broken = true;
  if (on_broken) on_broken(connection);
}

void Engine::remove(Connection& connection) {
  connection.closing = true;
  std::erase(watched_, &connection);
  std::erase(backlogged_, &connection);
  connection.backlogged = false;
  by_doorbell_[connection.doorbell] = nullptr;
  drop_stalled(connection);
  if (connection.in_flight == 0) {
    std::erase(ended_, &connection);
    end(connection);
  }
}

void Engine::drop_stalled(Connection& connection) {
  stalled_ -= std::exchange(connection.stalled_count, 0);
  for (std::vector<Request*>& of_ring : connection.stalled) {
    for (Request* request : std::exchange(of_ring, {})) {
      no_longer_waits(*request);
      release(*request);
    }
  }
}

void Engine::end(Connection& connection) {
  if (on_ended) on_ended(connection);
  const auto at = std::ranges::find_if(connections_,
                                       [&](const auto& each) { return each.get() == &connection; });
  std::swap(*at, connections_.back());
  connections_.pop_back();
  // Who sees that it has ended, sees all that it did.
  counts_.connections.store(static_cast<std::uint32_t>(connections_.size()),
                            std::memory_order_release);
}

}  // namespace espalier::offload
