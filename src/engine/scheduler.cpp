// SPDX-License-Identifier: Apache-2.0
// Takes requests, calls their offloads, and answers. scheduler_waits.cpp has their waits.
#include "engine/scheduler.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/own_counter.hpp"
#include "base/try_reserve.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/client_table.hpp"
#include "engine/connection.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/services.hpp"
#include "engine/undurable.hpp"
#include "engine/waiting_answers.hpp"
#include "wire/refusal.hpp"

namespace espalier::offload {
namespace {

constexpr std::uint32_t kBurst = 16;  // requests that a ring gives in its turn
constexpr std::uint32_t kTurnsToMaintain = 256;
constexpr std::size_t kLooksWhenFull = 16;  // rings checked, for requests of other nodes

// Whether a call may have the flags beside the number of its response ring.
bool knows_flags(std::uint8_t ring, const Limits& limits) {
  const unsigned known = wire::kRingBits | wire::kHopBits | wire::kOnBehalf |
                         (limits.at_snapshot ? wire::kAtSnapshot : 0u);
  const bool too_far = (ring & wire::kHopBits) > wire::kHopsMax << wire::kHopShift;
  return (ring & ~known) == 0 && !too_far;
}

}  // namespace

// One executor of each kind that any offload uses.
std::vector<Scheduler::OfKind> Scheduler::make_executors(Scheduler& scheduler, Services& services,
                                                         const SchedulerOptions& options) {
  std::vector<OfKind> made;
  for (const Offload* const offload : services.offloads) {
    const ExecutorKind* const kind = offload != nullptr ? offload->executor : nullptr;
    if (kind == nullptr || std::ranges::find(made, kind, &OfKind::kind) != made.end()) continue;
    made.push_back({kind, kind->make({scheduler, services, options.shard})});
  }
  return made;
}

Scheduler::Scheduler(Services& services, ClientTable& clients, const SchedulerOptions& options)
    : services_(services),
      clients_(clients),
      options_(options),
      offloads_(services.offloads),
      catalog_(services.catalog()),
      executors_(make_executors(*this, services, options)),
      undurable_(std::make_unique<Undurable>(*this)) {
  ESPALIER_ASSERT(executors_.size() <= 32);  // a bit each
  std::uint32_t bit = 1;
  for (const OfKind& each : executors_)
    each.executor->asks_by(asking_, std::exchange(bit, bit << 1));
  for (std::uint32_t i = 0; i < kInFlight; ++i) add_place();
  std::ranges::reverse(free_);
}

Scheduler::~Scheduler() { ESPALIER_ASSERT(idle() && handed_over_ == 0); }

bool Scheduler::turn() {
  ++turns_;
  bool moved = false;
  if (has_resumed_.load(std::memory_order_acquire)) {
    take_resumed();
    moved = true;
  }
  // With busy rings, polls the doorbells less often: a scan costs some cache lines that clients
  // write.
  if (!took_ || turns_ % ClientTable::kTurnsToListen == 0) clients_.listen(turns_);
  took_ = take_requests();
  moved = took_ || moved;
  if (asking_ != 0) moved = take_executor_turns() || moved;
  if (!again_.empty() || !times_.empty()) moved = go_on() || moved;
  moved = go_on_in_places() || moved;
  if (catalog_.redo() != nullptr && something_waits()) [[unlikely]]
    moved = look_at_durable() || moved;
  if (clients_.waits_for_clients()) {
    moved = clients_.flush_backlogs([this](Connection& connection, std::uint32_t ring) {
      return go_on_stalled(connection, ring);
    }) || moved;
  }
  clients_.wake_readers();
  clients_.end_closed();
  if (turns_ % kTurnsToMaintain == 0) {
    publish_in_flight();
    if (clients_.maintain()) {
      try {
        for (const OfKind& each : executors_) each.executor->maintain();
        parts_.for_each([this](SchedulerPart& part) { part.maintain(services_); });
      } catch (const std::bad_alloc&) {  // retried the next time
      }
    }
  }
  return moved;
}

// One turn for each that asks. It may ask for its next meanwhile.
bool Scheduler::take_executor_turns() {
  bool moved = false;
  std::uint32_t bit = 1;
  for (const OfKind& each : executors_) {
    if ((asking_ & bit) != 0) {
      asking_ &= ~bit;
      moved = each.executor->turn() || moved;
    }
    bit <<= 1;
  }
  return moved;
}

bool Scheduler::has_news() {
  clients_.listen(turns_);
  publish_in_flight();  // published now, since the thread may sleep for long
  return has_resumed_.load(std::memory_order_acquire) ||
         (something_waits() && !may_sleep_until_durable()) ||
         std::ranges::any_of(executors_,
                             [](const OfKind& each) { return each.executor->has_news(); }) ||
         std::ranges::any_of(clients_.watched(), [this](const Connection* connection) {
           if (connection->broken || !connection->requests.ready()) return false;
           const std::uint8_t hops = next_hops(*connection);
           return hops != 0 ? has_room_for_hops(*connection, hops)
                            : room_for_clients(*connection, share_of_each()) != 0;
         });
}

void Scheduler::publish_in_flight() {
  const auto in_flight = static_cast<std::uint32_t>(places_.size() - free_.size());
  counts_.in_flight.store(in_flight + waiting_answers_, std::memory_order_relaxed);
}

void Scheduler::remove(Connection& connection) {
  if (connection.helper_client != kNodeClient) {
    services_.helpers.end_client(std::exchange(connection.helper_client, kNodeClient), [] {});
  }
  for (const auto& [account, client] : connection.relayed_helper_clients) {
    if (client != kNodeClient) services_.helpers.end_client(client, [] {});
  }
  connection.relayed_helper_clients.clear();
  drop_waiting(connection);
  clients_.close(connection);
}

// --- taking requests -----------------------------------------------------------------------------

bool Scheduler::take_requests() {
  const std::span<Connection* const> watched = clients_.watched();
  const std::size_t rings = watched.size();
  if (rings == 0 || !taking_) return false;
  const std::uint32_t share = share_of_each();
  bool took = false;
  if (first_ >= rings) first_ = 0;
  std::size_t turn = 0;
  std::size_t looks = kLooksWhenFull;
  for (; turn < rings; ++turn) {
    if (busy() >= kInFlight && looks-- == 0) break;
    std::size_t at = first_ + turn;
    if (at >= rings) at -= rings;
    Connection& connection = *watched[at];
    if (take_from(connection, share)) {
      connection.quiet_turns = 0;
      took = true;
    } else {
      ++connection.quiet_turns;
    }
  }
  first_ += turn;  // the next turn begins with the first ring that was not reached
  if (first_ >= rings) first_ -= rings;
  return took;
}

// Requests that one connection may have in flight. Requires: some are watched.
std::uint32_t Scheduler::share_of_each() const {
  const std::uint32_t share = kInFlight / static_cast<std::uint32_t>(clients_.watched().size());
  return std::min(std::max(share, kBurst / 2), options_.in_flight_max);
}

bool Scheduler::take_from(Connection& connection, std::uint32_t share) {
  rings::MessageReader& ring = connection.requests;
  if (connection.broken || !ring.ready()) return false;
  bool took = false;
  std::uint32_t clients_more = room_for_clients(connection, share);
  std::uint32_t burst = kBurst;
  do {
    const std::uint8_t hops = next_hops(connection);
    if (hops == 0 || planted(Bug::hops_wait_for_clients)) [[likely]] {
      if (clients_more-- == 0) break;
    } else if (!has_room_for_hops(connection, hops)) {
      break;
    }
    Request* const place = free_place();
    if (place == nullptr) break;
    const rings::Taken taken = ring.take_ready(place->message);
    if (taken == rings::Taken::nothing) break;
    if (taken == rings::Taken::broken) {
      clients_.break_off(connection);
      break;
    }
    took = true;
    free_.pop_back();
    place->refused = taken == rings::Taken::refused;
    take(*place, connection, hops);
  } while (--burst != 0 && !connection.broken && ring.ready());
  return took;
}

// Begins a request whose message has arrived, as one with so many hops.
inline void Scheduler::take(Request& request, Connection& connection, std::uint8_t hops) {
  request.header = base::load_plain<wire::RequestHeader>(request.message.data());
  request.connection = &connection;
  request.offload = nullptr;
  request.no_memory = false;
  request.counted = Counted::by_both;
  request.streamed = false;
  request.wanted_bytes = 0;
  request.timed_since_ns = 0;
  ++connection.in_flight;
  count_in(request);
  // The ring of the answer must exist, and the hops must be those for which there was room.
  if (request.ring() >= connection.layout().response_rings ||
      (request.header.ring & wire::kHopBits) >> wire::kHopShift != hops) {
    clients_.break_off(connection);
    release(request);
  } else if (connection.ring(request.ring()).backlog_bytes() != 0) {
    stall(request);
  } else if (hops == 0) [[likely]] {
    begin(request);
  } else {
    begin_in_place(request);
  }
}

std::uint8_t Scheduler::next_hops(const Connection& connection) {
  return (connection.requests.peek(offsetof(wire::RequestHeader, ring)) & wire::kHopBits) >>
         wire::kHopShift;
}

bool Scheduler::has_room_for_hops(const Connection& connection, std::uint8_t hops) {
  const std::uint8_t known = std::min(hops, wire::kHopsMax);
  const WaitingAnswers* const waiting = connection.waiting.get();
  const std::uint32_t answered = waiting != nullptr ? waiting->of_hops(known) : 0;
  return connection.taken[known] + answered < wire::kHopRequestsMax;
}

// How many more requests of the client may come from its ring now.
std::uint32_t Scheduler::room_for_clients(const Connection& connection, std::uint32_t share) const {
  const std::uint32_t in_flight = busy();
  const std::uint32_t own = connection.counted[0];
  if (in_flight >= kInFlight || own >= share || is_kept_back(connection)) return 0;
  const std::uint32_t room = std::min(share - own, kInFlight - in_flight);
  if (connection.waiting == nullptr) [[likely]]
    return room;
  // The answer of each request in flight may have to wait.
  const std::uint32_t has = connection.waiting->of_hops(0) + own;
  const std::uint32_t most = services_.waiting_answers_max.load(std::memory_order_relaxed);
  return std::min(room, most - std::min(most, has));
}

// A no-op does not wait: it only asks whether the node is alive.
void Scheduler::begin_in_place(Request& request) {
  const std::uint8_t hops = request.hops();
  const bool noop = request.header.offload == static_cast<std::uint8_t>(wire::OffloadId::noop);
  if (hops == 0 || noop) [[likely]]
    return begin(request);
  set_aside(request, Counted::by_none);
  Connection& connection = *request.connection;
  if (connection.without_place[hops].empty() && has_place(connection, hops)) {
    take_back(request);
    return begin(request);
  }
  connection.without_place[hops].push(&request);
  clients_.watch(connection);  // only watched connections are checked for a free place
  ++connection.without_place_count;
  ++without_place_;
}

// There are more places than busy ones, if some wait for their clients.
Request* Scheduler::free_place() noexcept {
  if (free_.empty()) [[unlikely]] {
    try {
      add_place();
    } catch (const std::bad_alloc&) {  // the request stays in its ring until there is a place
      return nullptr;
    }
  }
  return free_.back();
}

// With it, room in all lists in which its request may be.
void Scheduler::add_place() {
  const std::size_t places = places_.size() + 1;
  const auto make_room = [places](auto&... lists) {
    (base::reserve_more(lists, places - lists.size()), ...);
  };
  make_room(places_, free_, again_, going_on_, times_);
  undurable_->make_room(places);
  for (const OfKind& each : executors_) each.executor->make_room(places);
  {
    const std::lock_guard lock(mutex_);
    make_room(resumed_, going_resumed_);
  }
  places_.push_back(std::make_unique<Request>());
  places_.back()->index = static_cast<std::uint32_t>(places - 1);
  free_.push_back(places_.back().get());
}

void Scheduler::begin(Request& request) {
  if (request.refused) {
    services_.refused_messages.fetch_add(1, std::memory_order_relaxed);
    return fail(request, {Code::out_of_memory, 0, 0});
  }
  if (request.header.key_bytes > request.header.bytes - wire::kRequestHeaderBytes) {
    request.header.key_bytes = 0;
    return fail(request, {Code::invalid_argument, 0, 0});
  }
  guarded(request, [&] {
    if (!check(request)) return;
    Call call(*this, request);
    static_cast<void>(request.offload->step(call));
  });
}

void Scheduler::go_on_with(Request& request, const void* from_executor,
                           std::uint64_t waits_for) noexcept {
  if (request.no_memory) [[unlikely]]
    return answer_no_memory(request);
  guarded(request, [&] {
    Call call(*this, request, from_executor, waits_for);
    static_cast<void>(request.offload->step(call));
  });
}

// An offload throws before it has handed its request over, so the request is in no list.
void Scheduler::answer_no_memory(Request& request) noexcept {
  if (request.connection == nullptr) return;
  request.state.clear(spare_states_);  // frees the ring from a long answer that was begun
  fail(request, {Code::out_of_memory, 0, 0});
}

// Fails a request that its offload cannot accept.
inline bool Scheduler::check(Request& request) {
  const Offload* const offload = offloads_[request.header.offload];
  request.offload = offload;
  if (offload == nullptr) {
    fail(request, {Code::unsupported, 0, request.header.offload});
    return false;
  }
  base::count_own(counts_.requests[SchedulerCounts::place_of(request.header.offload)]);
  if (--until_timed_ == 0) [[unlikely]]
    begin_timing(request);
  const bool may = request.connection->access.may_at_once(offload->right);
  if ((!may || request.on_behalf()) && !check_access(request)) [[unlikely]]
    return false;
  const ServingGate* const gate = clients_.gate();
  if (gate != nullptr && gate->refused[request.header.offload]) [[unlikely]] {
    fail(request, {Code::unsupported, 0, request.header.offload}, gate->why_refused);
    return false;
  }
  const Limits& limits = offload->limits;
  if ((request.header.ring & ~wire::kRingBits) != 0 && !knows_flags(request.header.ring, limits))
      [[unlikely]] {
    fail(request, {Code::invalid_argument, 0, request.header.ring});
    return false;
  }
  const std::uint32_t payload =
      request.header.bytes - wire::kRequestHeaderBytes - request.header.key_bytes;
  if (!limits.map && (request.header.key_bytes < limits.key_bytes_min ||
                      request.header.key_bytes > limits.key_bytes_max)) {
    fail(request, {Code::invalid_argument, 0, request.header.key_bytes});
    return false;
  }
  if (payload < limits.payload_bytes_min || payload > limits.payload_bytes_max) {
    fail(request, {Code::invalid_argument, 0, payload});
    return false;
  }
  const ExecutorKind* const kind = offload->executor;
  return kind == nullptr || executor(*kind).admit(request);
}

// Pseudo-random distances from 1 to 127: requests often have a rhythm, and a fixed distance might
// always sample the same ones.
void Scheduler::begin_timing(Request& request) {
  until_timed_ = 1 + (++timed_ * 2'654'435'769u >> 16) % 127;
  request.timed_since_ns = base::monotonic_ns();
}

// Samples about one in 64.
void Scheduler::end_timing(Request& request) {
  const std::uint64_t now = base::monotonic_ns();
  counts_.durations[SchedulerCounts::place_of(request.header.offload)].record(
      now - request.timed_since_ns);
  if (request.offload->sampled != nullptr) request.offload->sampled(request, now);
}

// --- answers -------------------------------------------------------------------------------------

// Inlined: nearly each request ends here.
[[gnu::always_inline]] inline void Scheduler::release_now(Request& request) {
  Connection& connection = *request.connection;
  const Offload* const offload = request.offload;
  if (offload == nullptr || offload->secret_key) [[unlikely]]
    wipe_secret(request);
  count_out(request);
  if (request.works_on != nullptr) --std::exchange(request.works_on, nullptr)->users;
  request.connection = nullptr;
  request.message.clear();
  request.state.clear(spare_states_);
  free_.push_back(&request);
  clients_.count_out(connection);
}

void Scheduler::release(Request& request) { release_now(request); }

[[gnu::always_inline]] inline void Scheduler::send_answer(
    Request& request, const wire::ResponseHeader& header,
    std::initializer_list<std::string_view> payload) {
  ESPALIER_ASSERT(request.connection != nullptr);  // taken, and not answered yet
  try {
    clients_.send(*request.connection, request.ring(), wire::ResponseKind::answer,
                  request.header.tag, header, payload);
  } catch (const std::bad_alloc&) {
    // A read can still be refused. A completed write must not be reported as failed; where not even
    // a refusal can be deferred, the client's connection ends.
    if (header.code == 0 && request.offload->right == Right::read) throw;
    clients_.break_off(*request.connection);
  }
  if (request.timed_since_ns != 0) [[unlikely]]
    end_timing(request);
  if (request.offload != nullptr && request.offload->right == Right::admin) [[unlikely]]
    audit_act(request, header, payload);
  release_now(request);
}

void Scheduler::answer(Request& request, const wire::ResponseHeader& header,
                       std::initializer_list<std::string_view> payload, std::uint64_t waits_for) {
  if (catalog_.redo() != nullptr) [[unlikely]] {
    const AnswerWaits waits = waits_of(request, header, waits_for);
    if (waits.any()) return keep_answer(request, waits, header, payload);
  }
  send_answer(request, header, payload);
}

void Scheduler::answer_now(Request& request, const wire::ResponseHeader& header,
                           std::initializer_list<std::string_view> payload) {
  send_answer(request, header, payload);
}

void Scheduler::fail(Request& request, Error error, std::string_view words,
                     std::uint64_t waits_for) {
  base::count_own(counts_.refused);
  std::string why;
  if (error == catalog::kRecordLost && words.empty()) [[unlikely]]
    words = why = why_not_durable();
  wire::ResponseHeader header{};
  header.code = static_cast<std::uint16_t>(error.code);
  const auto detail = wire::detail_bytes(error);
  answer(request, header, {{detail.data(), detail.size()}, words}, waits_for);
}

bool Scheduler::response_fits(Request& request, std::uint64_t bytes) {
  const std::uint64_t whole = bytes + wire::kResponseHeaderBytes;
  const auto fit = clients_.fits(*request.connection, request.ring(), whole);
  if (fit == ClientTable::Fit::memory_is_short) request.wanted_bytes = whole;
  return fit == ClientTable::Fit::yes;
}

// Also for a request that was refused or ended before its offload has read the key.
void Scheduler::wipe_secret(Request& request) {
  const Offload* const offload = offloads_[request.header.offload];
  const bool whole = !request.refused &&
                     request.header.key_bytes <= request.header.bytes - wire::kRequestHeaderBytes;
  if (offload != nullptr && offload->secret_key && whole) request.wipe_key();
}

// The other request may have been answered by now; then there is nothing to cancel. One that waits
// for its place, or for room in its ring, never begins.
void Scheduler::cancel(const Request& asks, std::uint32_t tag) {
  for (const auto& place : places_) {
    Request& other = *place;
    if (&other == &asks || other.connection != asks.connection || other.header.tag != tag ||
        other.ring() != asks.ring()) {
      continue;
    }
    if (other.offload == nullptr) {
      if (!withdraw(other)) continue;
      return fail(other, {Code::busy, 0, 0});
    }
    if (other.offload->cancel == nullptr || is_answered(other)) return;
    Call call(*this, other);
    return other.offload->cancel(call);
  }
}

// --- for offloads --------------------------------------------------------------------------------

Services& Call::services() { return scheduler_.services_; }
catalog::Catalog& Call::catalog() { return scheduler_.catalog_; }
TypedSlots<SchedulerPart>& Call::scheduler_parts() { return scheduler_.parts_; }
std::uint32_t Call::shard() const { return scheduler_.options_.shard; }
HandlerState::Spares& Call::spares() { return scheduler_.spare_states_; }
Executor& Call::executor(const ExecutorKind& kind) { return scheduler_.executor(kind); }
void Call::cancel(std::uint32_t tag) { scheduler_.cancel(request_, tag); }

Next Call::answer(const wire::ResponseHeader& header,
                  std::initializer_list<std::string_view> payload) {
  scheduler_.answer(request_, header, payload, waits_for_);
  return {};
}

Next Call::answer(const wire::ResponseHeader& header, std::vector<std::byte> message) {
  scheduler_.clients_.send_promised(*request_.connection, request_.ring(),
                                    wire::ResponseKind::answer, request_.header.tag, header,
                                    std::move(message));
  if (request_.timed_since_ns != 0) scheduler_.end_timing(request_);
  scheduler_.release(request_);
  return {};
}

Next Call::fail(Error error, std::string_view words) {
  scheduler_.fail(request_, error, words, waits_for_);
  return {};
}

bool Call::has_deferred() {
  return request_.connection->ring(request_.ring()).backlog_bytes() != 0;
}

bool Call::response_fits(std::uint64_t bytes) { return scheduler_.response_fits(request_, bytes); }

void Call::send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                      std::initializer_list<std::string_view> payload) {
  header.flags = static_cast<std::uint8_t>(kind);
  scheduler_.clients_.send(*request_.connection, request_.ring(), wire::ResponseKind::chunk,
                           request_.header.tag, header, payload);
  request_.streamed = true;
}

void Call::send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                      std::vector<std::byte> message) {
  header.flags = static_cast<std::uint8_t>(kind);
  scheduler_.clients_.send_promised(*request_.connection, request_.ring(),
                                    wire::ResponseKind::chunk, request_.header.tag, header,
                                    std::move(message));
  request_.streamed = true;
}

}  // namespace espalier::offload
