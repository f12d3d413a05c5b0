// SPDX-License-Identifier: Apache-2.0
#include "channel/rings/remote_pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.hpp"
#include "wire/item_limits.hpp"
#include "wire/items.hpp"
#include "wire/refusal.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

wire::OffloadId offload_of(Op op) {
  switch (op) {
    case Op::get: return wire::OffloadId::get;
    case Op::put: return wire::OffloadId::put;
    case Op::insert: return wire::OffloadId::insert;
    case Op::update: return wire::OffloadId::update;
    case Op::erase: return wire::OffloadId::erase;
    case Op::floor: return wire::OffloadId::floor;
    case Op::scan: return wire::OffloadId::scan;
    case Op::scan_reverse: return wire::OffloadId::scan_reverse;
    case Op::scan_floor: return wire::OffloadId::scan_floor;
    case Op::invalid: break;
  }
  return wire::OffloadId::invalid;
}

// Whoever waits otherwise than in poll() hears of a lost connection all the same: the socket is
// asked after so many looks in vain.
constexpr std::uint32_t kFruitlessMax = 4096;

bool is_scan(Op op) { return op == Op::scan || op == Op::scan_reverse || op == Op::scan_floor; }

bool has_value(Op op) { return op == Op::put || op == Op::insert || op == Op::update; }

wire::OffloadId call_of(Op op, const Scope& scope) {
  return scope.call_of == nullptr ? offload_of(op) : scope.call_of(op);
}

Error error_of(const Incoming& response) {
  return wire::error_in(response.header.code, response.payload);
}

}  // namespace

RemoteRequests::RemoteRequests(ThreadRings& rings, std::uint32_t in_flight)
    : rings_(rings), places_(in_flight) {
  free_.reserve(in_flight);
  for (std::uint32_t i = in_flight; i != 0; --i) free_.push_back(i - 1);
  prepared_.reserve(in_flight);
  items_.reserve(kItemsTogether);
}

RemoteRequests::~RemoteRequests() { drain(); }

void RemoteRequests::submit(std::span<const Request> requests, Handler& handler,
                            const Scope& scope) {
  if (!try_submit(requests, handler, scope)) throw std::bad_alloc();
}

bool RemoteRequests::try_submit(std::span<const Request> requests, Handler& handler,
                                const Scope& scope) {
  if (requests.empty()) return true;
  try {
    batches_.push_back({requests, &handler, scope});
  } catch (const std::bad_alloc&) {
    return false;
  }
  queued_ += requests.size();
  send_more();
  return true;
}

std::size_t RemoteRequests::poll() {
  const std::uint64_t before = completed_;
  while (advance() != 0 && completed_ == before) {
    // With nothing in flight it is for room in the request ring, which other threads share.
    const bool there = busy_ != 0 ? rings_.wait() : pending() == 0 || rings_.wait_for_room();
    if (!there) lose_all();
  }
  return pending();
}

std::size_t RemoteRequests::advance() {
  const std::uint64_t before = completed_;
  if (queued_ != 0 && !free_.empty()) send_more();
  while (take_one() && busy_ != 0) {  // a look in vain may cost a system call
  }
  fruitless_ = completed_ == before ? fruitless_ + 1 : 0;
  const bool lost =
      rings_.lost() || (fruitless_ % kFruitlessMax == kFruitlessMax - 1 && rings_.ask_lost());
  if (lost) {
    while (take_one()) {  // what came before the end
    }
    lose_all();
  }
  if (completed_ != before && pending() == 0) rings_.enter_idle();
  return pending();
}

void RemoteRequests::drain() {
  while (pending() != 0) poll();
}

// --- sending -------------------------------------------------------------------------------------

void RemoteRequests::send_more() {
  while (queued_ != 0 && !free_.empty() && !rings_.lost()) {
    if (!send_some(batches_.front())) break;
    if (batches_.front().requests.empty()) batches_.pop_front();
  }
  rings_.ring();
  if (busy_ == 0 && queued_ != 0 && rings_.lost()) lose_all();
}

// Sends the batch's next requests, as many as can be sent together. Returns false if none can be.
bool RemoteRequests::send_some(Batch& batch) {
  if (const Code code = refuse(batch.requests.front(), batch.scope); code != Code::invalid) {
    Error error{code, 0, 0};
    if (code == Code::key_too_long) error.detail = batch.scope.max_key_bytes;
    if (code == Code::value_too_long) error.detail = wire::kValueBytesMax;
    refuse_next(batch, error);
    return true;
  }
  prepare(batch);
  for (const wire::CallMessage& next : prepared_) {
    const std::uint32_t number = free_.back();
    try {
      if (!rings_.send(next, number)) return false;
    } catch (const std::bad_alloc&) {  // it is long, alone, and nothing of it was sent
      refuse_next(batch, {Code::out_of_memory, 0, 0});
      return true;
    }
    places_[number] = {&batch.requests.front(), batch.handler, false, false, 0};
    free_.pop_back();
    --queued_;
    ++busy_;
    batch.requests = batch.requests.subspan(1);
  }
  return true;
}

void RemoteRequests::refuse_next(Batch& batch, const Error& error) {
  Completion completion;
  completion.error = error;
  const Request& request = batch.requests.front();
  batch.requests = batch.requests.subspan(1);
  --queued_;
  complete(request, *batch.handler, completion);
}

// What a message cannot even say is refused here; all else the node decides.
Code RemoteRequests::refuse(const Request& request, const Scope& scope) {
  const bool scans = is_scan(request.op);
  if ((request.key.empty() && !scans) || request.key.size() > scope.max_key_bytes ||
      (scans && request.high.size() > scope.max_key_bytes)) {
    return Code::key_too_long;
  }
  if (call_of(request.op, scope) == wire::OffloadId::invalid) {
    const bool known = offload_of(request.op) != wire::OffloadId::invalid;
    return known ? Code::unsupported : Code::invalid_argument;
  }
  if (has_value(request.op) && request.value.size() > wire::kValueBytesMax) {
    return Code::value_too_long;
  }
  return Code::invalid;
}

wire::CallMessage RemoteRequests::outgoing(const Request& request, const Scope& scope) {
  wire::CallMessage outgoing;
  outgoing.offload = call_of(request.op, scope);
  outgoing.map = scope.map;
  outgoing.key = request.key;
  if (is_scan(request.op)) {
    outgoing.argument = request.limit;
    outgoing.more_payload = request.high;
  } else if (has_value(request.op)) {
    outgoing.more_payload = request.value;
  }
  if (scope.hints != nullptr) outgoing.hint = scope.hints->hint_of(request);
  if (scope.snapshot != 0) {
    outgoing.at_snapshot = true;
    outgoing.payload = {reinterpret_cast<const char*>(&scope.snapshot), sizeof scope.snapshot};
  }
  return outgoing;
}

// Prepares the next few requests, and reserves lines for them together; or the next one alone,
// where it is long. Requires: the next one is not to be refused.
void RemoteRequests::prepare(const Batch& batch) {
  prepared_.clear();
  std::uint64_t slots = 0;
  for (const Request& request :
       batch.requests.first(std::min(batch.requests.size(), free_.size()))) {
    const bool first = prepared_.empty();
    if (!first && refuse(request, batch.scope) != Code::invalid) break;
    const wire::CallMessage next = outgoing(request, batch.scope);
    const std::uint32_t its = ThreadRings::slots_of(next);
    if (!first && slots + its > rings_.batch_slots_max()) break;
    slots += its;
    prepared_.push_back(next);
  }
  // Where there is no room for all of them, each asks for its own until there is none.
  if (prepared_.size() > 1) static_cast<void>(rings_.reserve(slots));
}

// --- receiving -----------------------------------------------------------------------------------

bool RemoteRequests::take_one() {
  Incoming response;
  if (!rings_.receive(response)) return false;
  const std::uint32_t number = response.header.tag;
  // Not of anything in flight: an answer to a cancel, or nonsense. Nobody waits for either.
  if (number >= places_.size() || places_[number].request == nullptr) return true;
  if (response.header.kind == static_cast<std::uint8_t>(wire::ResponseKind::chunk)) {
    Place& place = places_[number];
    // There was no memory for a chunk: with what is missing, the scan ends.
    place.no_memory |= response.refused;
    const bool more = !response.refused && take_items(place, response.payload);
    if (!more && !place.stopped) stop(place);
  } else {
    finish(number, response);
  }
  return true;
}

// False: the handler wants no more.
bool RemoteRequests::take_items(Place& place, std::string_view payload) {
  while (!place.stopped) {
    items_.clear();
    Item item;
    while (items_.size() < kItemsTogether && wire::take_item(payload, item)) items_.push_back(item);
    if (items_.empty()) return true;
    place.items += items_.size();
    if (!place.handler->items(place.request->tag, items_)) return false;
  }
  return false;
}

void RemoteRequests::stop(Place& place) {
  place.stopped = true;
  const wire::RequestMessage<session_calls::Cancel> cancel(
      {static_cast<std::uint32_t>(&place - places_.data())});
  // Where it cannot be sent now, the scan runs to its end, and nobody hears of it.
  static_cast<void>(send_aside(cancel.get()));
}

void RemoteRequests::finish(std::uint32_t number, const Incoming& response) {
  Place& place = places_[number];
  ESPALIER_ASSERT(place.request != nullptr && busy_ != 0);
  const Request& request = *place.request;
  Completion completion;
  completion.found = (response.header.flags & wire::kFound) != 0;
  completion.applied = (response.header.flags & wire::kApplied) != 0;
  completion.read_version = response.header.read_version;
  if (place.no_memory) {
    completion.error = {Code::out_of_memory, 0, 0};
  } else if (response.header.code != 0) {
    completion.error = error_of(response);
  } else if (is_scan(request.op)) {
    static_cast<void>(take_items(place, response.payload));  // a scan that has ended needs no stop
    completion.items = place.items;
  } else {
    completion.version = response.header.version;
    completion.value = response.payload;
  }
  Item item;
  std::string_view payload = response.payload;
  if (request.op == Op::floor && completion.found && wire::take_item(payload, item)) {
    completion.key = item.key;
    completion.value = item.value;
  }
  Handler& handler = *place.handler;
  place.request = nullptr;
  free_.push_back(number);
  --busy_;
  complete(request, handler, completion);
}

void RemoteRequests::complete(const Request& request, Handler& handler, Completion& completion) {
  completion.tag = request.tag;
  completion.op = request.op;
  completion.ok = completion.error.code == Code::invalid;
  ++completed_;
  handler.done(completion);
}

void RemoteRequests::lose_all() {
  Completion lost;
  lost.error = rings_.lost_error();
  for (std::uint32_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (place.request == nullptr) continue;
    const Request& request = *std::exchange(place.request, nullptr);
    free_.push_back(i);
    --busy_;
    complete(request, *place.handler, lost);
  }
  while (!batches_.empty()) {
    const Batch batch = batches_.front();
    batches_.pop_front();
    queued_ -= batch.requests.size();
    for (const Request& request : batch.requests) complete(request, *batch.handler, lost);
  }
}

Result<Reply> RemoteRequests::call(const wire::CallMessage& request) {
  auto reply = ask(request);
  if (!reply) return std::unexpected(reply.error().error);
  return std::move(*reply);
}

// Sends what is no request of a map's. Returns false if the connection is lost.
bool RemoteRequests::send_whole(const wire::CallMessage& request, std::uint32_t tag) {
  while (!rings_.send(request, tag)) {
    if (rings_.lost()) return false;
    rings_.ring();
    // An answer that nobody waits for may be what takes the room.
    if (!take_one() && !rings_.wait_for_room()) return false;
  }
  rings_.ring();
  return true;
}

bool RemoteRequests::begin(const wire::CallMessage& request) {
  ESPALIER_ASSERT(pending() == 0);
  return send_whole(request, kBegunTag);
}

std::optional<Incoming> RemoteRequests::take_piece() {
  Incoming response;
  while (rings_.receive(response)) {
    if (response.header.tag != kBegunTag) continue;
    // A piece that is missing cannot be told from one that was never sent.
    if (response.refused && !is_last(response)) rings_.lose();
    return response;
  }
  return std::nullopt;
}

bool RemoteRequests::cancel_begun() {
  const wire::RequestMessage<session_calls::Cancel> cancel({kBegunTag});
  return send_aside(cancel.get());
}

bool RemoteRequests::send_aside(const wire::CallMessage& request) {
  if (!rings_.send(request, kAsideTag)) return false;
  rings_.ring();
  return true;
}

Refusal RemoteRequests::refusal_of(const Incoming& piece) {
  Refusal refusal{error_of(piece), {}};
  try {
    refusal.words = wire::words_in(piece.payload);
  } catch (const std::bad_alloc&) {  // the code says enough
  }
  return refusal;
}

std::expected<Reply, Refusal> RemoteRequests::ask(const wire::CallMessage& request,
                                                  const ChunkSink& sink) {
  if (!begin(request)) return std::unexpected(Refusal{rings_.lost_error(), {}});
  auto reply = await(sink);
  if (!reply && answer_refused_) throw std::bad_alloc();
  return reply;
}

std::expected<Reply, Refusal> RemoteRequests::await(const ChunkSink& sink) {
  answer_refused_ = false;
  for (bool wanted = static_cast<bool>(sink);;) {
    const auto piece = take_piece();
    if (!piece) {
      if (!rings_.wait()) return std::unexpected(Refusal{rings_.lost_error(), {}});
      continue;
    }
    if (!is_last(*piece)) {
      const auto kind = static_cast<wire::ChunkKind>(piece->header.flags & wire::kChunkBits);
      if (!wanted || sink(kind, piece->payload)) continue;
      wanted = false;
      static_cast<void>(cancel_begun());
      continue;
    }
    rings_.enter_idle();
    answer_refused_ = piece->refused;
    if (piece->header.code == 0) return Reply{piece->header, std::string(piece->payload)};
    return std::unexpected(refusal_of(*piece));
  }
}

// Tags behind those of places.
bool RemoteRequests::send_alone(const wire::CallMessage& request, std::uint32_t ticket, bool more) {
  ESPALIER_ASSERT(pending() == 0);
  if (rings_.lost() || !rings_.send(request, first_alone() + ticket)) return false;
  if (!more) rings_.ring();
  return true;
}

std::optional<Incoming> RemoteRequests::take_alone_in_place() {
  Incoming response;
  while (rings_.receive(response)) {
    const std::uint32_t tag = response.header.tag;
    if (tag < first_alone() || tag >= kBegunTag) continue;
    response.header.tag = tag - first_alone();
    return response;
  }
  return std::nullopt;
}

std::optional<RemoteRequests::Answered> RemoteRequests::take_alone() {
  const auto response = take_alone_in_place();
  if (!response) return std::nullopt;
  const std::uint32_t ticket = response->header.tag;
  if (response->header.code != 0) return Answered{ticket, std::unexpected(error_of(*response))};
  return Answered{ticket, Reply{response->header, std::string(response->payload)}};
}

}  // namespace espalier::client
