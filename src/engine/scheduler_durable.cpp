// SPDX-License-Identifier: Apache-2.0
// The scheduler's answers that wait for durability. A short one waits in a queue of its connection,
// after its request was freed. A long one stays in its request, which counts like one that waits
// for a time: not as in flight, and among its client's own up to a bound.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/own_counter.hpp"
#include "catalog/await_opened.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/client_table.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "engine/undurable.hpp"
#include "engine/waiting_answers.hpp"
#include "store/durable_store.hpp"
#include "wire/refusal.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kAnswersTogether = 64;         // answers sent to a connection in its turn
constexpr std::uint64_t kReleaseSoonNs = 1'000'000;  // interval of checks that wait for no disk
constexpr std::uint64_t kRoomSoonNs = 5'000'000;     // for room, when nothing is being written

// The outcome is unspecified, or the request was refused before any change.
bool promises_nothing(Code code) {
  return code == Code::system || code == Code::busy || code == Code::not_permitted ||
         code == Code::unsupported;
}

// Whether a record is on its way to the disk, so that the mark will rise.
bool will_rise(catalog::RedoSink& sink) {
  return !sink.mark().failed() && sink.handed_over() > sink.mark().released();
}

enum class Readiness : std::uint8_t { waits, ready, lost };

// `failed` was read before `durable`.
Readiness readiness_of(std::uint64_t sequence, std::uint64_t version, const WorkedOn* of,
                       std::uint64_t durable, bool failed) {
  const bool ready = version == 0 ? sequence <= durable : of->is_released(version);
  if (ready) return Readiness::ready;
  return failed ? Readiness::lost : Readiness::waits;
}

// Whether it changes an object whose writes are answered before they are durable, or have no
// records.
bool is_answered_early(const catalog::Catalog& catalog, const Request& request) {
  if (request.offload->object != wire::Names::by_id) return false;
  const catalog::EntryPointer entry =
      catalog.find_any(static_cast<std::uint32_t>(request.header.map));
  return entry != nullptr && entry->object->answers_early();
}

}  // namespace

// The newest record that an answer may depend on; 0: send it immediately. A call's changes are in a
// record that exists by now; the set of objects is in the record of the last one created or
// dropped. A refusal of an invalid request, or of one that does not fit its object, depends on that
// object alone.
std::uint64_t Scheduler::record_before_answer(const Request& request,
                                              const wire::ResponseHeader& header) const {
  catalog::RedoSink* const sink = catalog_.redo();
  if (request.offload == nullptr) return 0;
  const Offload& offload = *request.offload;
  const auto code = static_cast<Code>(header.code);
  if (promises_nothing(code)) return 0;
  std::uint64_t sequence = 0;
  if (code == Code::invalid_argument) {
    const bool by_id = offload.object == wire::Names::by_id || offload.limits.map;
    const auto id = static_cast<std::uint32_t>(request.header.map);
    if (by_id) sequence = catalog::record_of_object(catalog_, id);
  } else if (offload.opens && code == Code::invalid) {
    const auto id = static_cast<std::uint32_t>(header.version);
    sequence = catalog::record_of_object(catalog_, id);
  } else if (offload.opens || offload.tells_of_objects || offload.object == wire::Names::by_name ||
             code == Code::not_found || code == Code::dropped) {
    sequence = catalog_.recorded();
  }
  if (offload.changes && !offload.waits_for_release && code != Code::invalid_argument) {
    const std::uint64_t newest = sink->handed_over();
    const bool waits = newest > sink->mark().released() && !is_answered_early(catalog_, request);
    if (waits) sequence = std::max(sequence, newest);
  }
  return sequence > sink->mark().released() ? sequence : 0;
}

// `version`: of the request's object; it may be released by now. All records that the answer
// depends on have been handed over.
Scheduler::AnswerWaits Scheduler::waits_of(const Request& request,
                                           const wire::ResponseHeader& header,
                                           std::uint64_t version) const {
  if (planted(Bug::answer_before_release)) return {};
  AnswerWaits waits{record_before_answer(request, header), 0};
  const bool tells = version != 0 && !promises_nothing(static_cast<Code>(header.code));
  if (!tells || request.works_on->is_released(version)) return waits;
  waits.version = version;
  waits.sequence = std::max(waits.sequence, catalog_.redo()->handed_over());
  return waits;
}

void Scheduler::keep_answer(Request& request, const AnswerWaits& waits,
                            const wire::ResponseHeader& header,
                            std::initializer_list<std::string_view> payload) {
  if (request.connection->closing) {  // it is done, though no client is notified
    if (request.offload->right == Right::admin) audit_act(request, header, payload);
    return release(request);
  }
  const base::DurableMark& mark = catalog_.redo()->mark();
  if (waits.sequence <= mark.released() || mark.failed()) undurable_->look_again = true;
  if (keep_without_request(request, waits, header, payload)) return;
  try {
    std::string bytes;
    for (const std::string_view piece : payload) bytes += piece;
    std::vector<Undurable::OfRequest>& kept = undurable_->kept;
    ESPALIER_ASSERT(kept.size() < kept.capacity());
    kept.push_back({&request, waits, header, std::move(bytes)});
    ++answered_;
    ++request.connection->timed_count;
    set_aside(request, Counted::by_none);
  } catch (const std::bad_alloc&) {
    if (header.code == 0 && request.offload->right == Right::read) throw;
    clients_.break_off(*request.connection);  // its answer could never be sent
    if (request.offload->right == Right::admin) audit_act(request, header, payload);
    release(request);
  }
}

// Administrators' actions are audited when answered, through the request.
bool Scheduler::keep_without_request(Request& request, const AnswerWaits& waits,
                                     const wire::ResponseHeader& header,
                                     std::initializer_list<std::string_view> payload) {
  Connection& connection = *request.connection;
  WaitingAnswer answer;
  for (const std::string_view piece : payload) {
    if (piece.size() > WaitingAnswer::kPayloadMax - answer.payload_bytes) return false;
    std::memcpy(answer.payload.data() + answer.payload_bytes, piece.data(), piece.size());
    answer.payload_bytes += static_cast<std::uint8_t>(piece.size());
  }
  if (request.offload->right == Right::admin) return false;
  if (connection.waiting == nullptr) {
    connection.waiting.reset(new (std::nothrow) WaitingAnswers(connection.share));
    if (connection.waiting == nullptr) return false;
  }
  WaitingAnswers& waiting = *connection.waiting;
  const std::uint32_t most = services_.waiting_answers_max.load(std::memory_order_relaxed);
  if (request.hops() == 0 && waiting.of_hops(0) >= most) return false;
  if (!waiting.make_room()) return false;
  answer.header = header;
  answer.header.tag = request.header.tag;
  answer.sequence = waits.sequence;
  answer.version = waits.version;
  if (waits.version != 0) answer.of = request.works_on;
  if (answer.of != nullptr) ++answer.of->users;
  answer.timed_since_ns = request.timed_since_ns;
  answer.ring = static_cast<std::uint8_t>(request.ring());
  answer.hops = request.hops();
  answer.offload = request.header.offload;
  if (waiting.empty()) undurable_->connections.push(&connection);
  waiting.push(answer);
  ++waiting_answers_;
  ++connection.in_flight;
  release(request);
  return true;
}

// --- until more is durable -----------------------------------------------------------------------

bool Scheduler::releases_by_records() const { return tree::must_be_durable(catalog_); }

void Scheduler::expect_release() {
  if (!will_rise(*catalog_.redo())) undurable_->look_again = true;
}

void Scheduler::wait_for_release(Request& request) {
  if (request.connection->closing) return release(request);
  set_aside(request, Counted::by_connection);
  undurable_->for_release.push_back(&request);
  expect_release();
}

bool Scheduler::may_wait_for_room() const {
  catalog::RedoSink* const sink = catalog_.redo();
  return sink != nullptr && sink->mark().is_of_records() && !sink->mark().failed();
}

// Writes to the disk make room. If none is under way, the log is at its bound and must be
// shortened; then it polls.
void Scheduler::begin_again_with_room(Request& request) {
  request.state.clear(spare_states_);
  if (request.connection->closing || will_rise(*catalog_.redo())) {
    return wait_for_release(request);
  }
  wait_until(request, base::monotonic_ns() + kRoomSoonNs);
}

bool Scheduler::something_waits() const {
  return waiting_answers_ != 0 || answered_ != 0 || !undurable_->for_release.empty() ||
         std::ranges::any_of(executors_,
                             [](const OfKind& each) { return each.executor->waits_for_release(); });
}

// Registers for the wake-up before the last check: either this thread or the one that raises the
// mark sees the other.
bool Scheduler::may_sleep_until_durable() {
  catalog::RedoSink* const sink = catalog_.redo();
  if (sink == nullptr || !sink->mark().is_of_records()) return false;
  if (!planted(Bug::sleeps_without_listening)) {
    undurable_->mark = &sink->mark();
    undurable_->mark->wake_when_risen(*undurable_);
  }
  const bool knows = undurable_->looked_at == sink->mark().released() &&
                     undurable_->knew_failure == sink->mark().failed();
  return knows && (undurable_->look_again || will_rise(*sink));
}

std::uint64_t Scheduler::release_limit_ns() const {
  const bool soon = undurable_->look_again && something_waits();
  return soon ? kReleaseSoonNs : std::numeric_limits<std::uint64_t>::max();
}

bool Scheduler::look_at_durable() {
  catalog::RedoSink* const sink = catalog_.redo();
  if (sink == nullptr) return false;
  const bool failed = sink->mark().failed();  // before the mark is read
  const std::uint64_t durable = sink->mark().released();
  Undurable& all = *undurable_;
  const bool has_risen =
      std::exchange(all.looked_at, durable) != durable || failed != all.knew_failure;
  all.knew_failure = failed;
  if (!std::exchange(all.look_again, false) && !has_risen) return false;
  bool moved = answer_durable();
  if (!all.for_release.empty()) {
    moved = true;
    all.going_on.swap(all.for_release);  // requests that wait again wait for the next time
    for (Request* const request : all.going_on) {
      take_back(*request);
      step(*request);
    }
    all.going_on.clear();
  }
  for (const OfKind& each : executors_) moved = each.executor->go_on_released() || moved;
  if (something_waits() && !will_rise(*sink)) all.look_again = true;
  return moved;
}

bool Scheduler::answer_durable() {
  if (waiting_answers_ + answered_ == 0) return false;
  const std::uint32_t before = waiting_answers_;
  undurable_->connections.sort_out([this](Connection* connection) {
    answer_of(*connection);
    if (!connection->waiting->empty()) undurable_->connections.push(connection);
  });
  const bool moved = answered_ != 0 && answer_requests();
  return moved || waiting_answers_ != before;
}

// A waiting answer blocks later ones: their records are newer.
void Scheduler::answer_of(Connection& connection) {
  WaitingAnswers& waiting = *connection.waiting;
  for (std::size_t given = 0; !waiting.empty(); ++given) {
    const WaitingAnswer& next = waiting.front();
    const Readiness readiness = readiness_of(next.sequence, next.version, next.of,
                                             undurable_->looked_at, undurable_->knew_failure);
    const bool soon = readiness == Readiness::waits && next.sequence <= undurable_->looked_at;
    if (soon || given == kAnswersTogether) undurable_->look_again = true;
    if (readiness == Readiness::waits || given == kAnswersTogether) return;
    try {
      give(connection, next, readiness == Readiness::lost);
    } catch (const std::bad_alloc&) {  // its answer could never be sent
      clients_.break_off(connection);
    }
    end_waiting(connection);
  }
}

// Where nothing more can be deferred for the client, ends its connection.
void Scheduler::give(Connection& connection, const WaitingAnswer& answer, bool lost) {
  if (answer.timed_since_ns != 0) {
    counts_.durations[SchedulerCounts::place_of(answer.offload)].record(base::monotonic_ns() -
                                                                        answer.timed_since_ns);
  }
  const auto send = [&](const wire::ResponseHeader& header,
                        std::initializer_list<std::string_view> payload) {
    clients_.send(connection, answer.ring, wire::ResponseKind::answer, answer.header.tag, header,
                  payload);
  };
  if (!lost) return send(answer.header, {answer.text()});
  base::count_own(counts_.refused);
  wire::ResponseHeader header{};
  header.code = static_cast<std::uint16_t>(catalog::kRecordLost.code);
  const auto detail = wire::detail_bytes(catalog::kRecordLost);
  send(header, {{detail.data(), detail.size()}, why_not_durable()});
}

void Scheduler::end_waiting(Connection& connection) {
  WorkedOn* const of = connection.waiting->front().of;
  if (of != nullptr) --of->users;
  connection.waiting->pop();
  --waiting_answers_;
  clients_.count_out(connection);
}

bool Scheduler::answer_requests() {
  std::vector<Undurable::OfRequest>& kept = undurable_->kept;
  bool moved = false;
  for (std::size_t i = 0; i < kept.size();) {
    const AnswerWaits& waits = kept[i].waits;
    const Readiness readiness =
        readiness_of(waits.sequence, waits.version, kept[i].request->works_on,
                     undurable_->looked_at, undurable_->knew_failure);
    if (readiness == Readiness::waits) {
      if (waits.sequence <= undurable_->looked_at) undurable_->look_again = true;
      ++i;
      continue;
    }
    const Undurable::OfRequest answer = std::move(kept[i]);
    if (i + 1 != kept.size()) kept[i] = std::move(kept.back());
    kept.pop_back();
    --answered_;
    Request& request = *answer.request;
    --request.connection->timed_count;
    take_back(request);
    moved = true;
    guarded(request, [&] {
      if (readiness == Readiness::lost) return fail(request, catalog::kRecordLost);
      answer_now(request, answer.header, {answer.payload});
    });
  }
  return moved;
}

void Scheduler::drop_undurable(Connection& connection) {
  std::erase_if(undurable_->kept, [&](const Undurable::OfRequest& answer) {
    if (answer.request->connection != &connection) return false;
    Request& request = *answer.request;
    --answered_;
    --connection.timed_count;
    // It is done, though no client is notified.
    if (request.offload->right == Right::admin) audit_act(request, answer.header, {answer.payload});
    release(request);
    return true;
  });
  std::erase_if(undurable_->for_release, [&](Request* request) {
    if (request->connection != &connection) return false;
    release(*request);
    return true;
  });
  if (connection.waiting == nullptr || connection.waiting->empty()) return;
  undurable_->connections.sort_out([&](Connection* each) {
    if (each != &connection) undurable_->connections.push(each);
  });
  while (!connection.waiting->empty()) end_waiting(connection);
}

bool Scheduler::is_answered(const Request& request) const {
  return std::ranges::find(undurable_->kept, &request, &Undurable::OfRequest::request) !=
         undurable_->kept.end();
}

std::string Scheduler::why_not_durable() const noexcept {
  try {
    const catalog::RedoSink* const sink = catalog_.redo();
    return sink != nullptr ? sink->failure() : std::string();
  } catch (const std::bad_alloc&) {  // then without text
    return {};
  }
}

// --- for offloads --------------------------------------------------------------------------------

bool Call::is_durable() { return tree::must_be_durable(catalog()); }

bool Call::is_durable(std::optional<Durability> own) {
  return tree::must_be_durable(catalog(), own);
}

std::optional<std::string_view> Call::why_not(std::optional<Durability> own) {
  if (tree::agreed_durability(catalog(), own)) return std::nullopt;
  if (!is_durable()) return "this node keeps nothing: it was started without a data folder";
  return "a member of a chain answers once all members have a record: its objects are sync";
}

Next Call::after_release() {
  if (!scheduler_.releases_by_records()) return again();
  scheduler_.wait_for_release(request_);
  return {};
}

bool Call::may_wait_for_room() { return scheduler_.may_wait_for_room(); }

Next Call::with_room() {
  scheduler_.begin_again_with_room(request_);
  return {};
}

}  // namespace espalier::offload
